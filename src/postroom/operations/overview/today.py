"""What was done today, in a few words, and can be undone together."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

from postroom.core.actions.steps import steps_of
from postroom.core.days import day_began
from postroom.store.actions.undos import DoneAlike, count_done
from postroom.store.engine.database import Database

MOST_COUNTED = 1_000
OTHERWISE = "changed"


@dataclass(frozen=True, slots=True)
class Today:
    """The messages that something was done with since the owner's midnight and not undone, by what was done to them, as
    in "17 archived": first those that left the inbox. `is_more` if the newest alone were counted.
    """

    since: datetime
    done: Sequence[tuple[str, int]]
    count: int
    is_more: bool


async def read_today(database: Database, now: datetime, zone: tzinfo) -> Today:
    since = day_began(now, zone)
    found = await database.run(count_done(since, MOST_COUNTED))
    counts = Counter[tuple[bool, str]]()
    for each in found:
        counts[not each.left_inbox, _done(each)] += each.count
    ordered = sorted(counts.items(), key=lambda each: (each[0][0], -each[1]))
    total = counts.total()
    return Today(since, [(word, count) for (_, word), count in ordered], total, total >= MOST_COUNTED)


def _done(each: DoneAlike) -> str:
    """What was done, in a word: of several steps, the one by which the message left the inbox, if it did."""
    steps = steps_of(each.action_type, each.parameters)
    telling = [step for step in steps if step.spec.leaves_inbox == each.left_inbox] or list(steps)
    return telling[0].spec.done if telling else OTHERWISE
