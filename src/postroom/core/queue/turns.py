"""Records what each pick did to the streaks, so that the pick of a message that was not delivered can be undone.

A pick increments some counters and resets ("breaks") others. Between a lease and its return there are other picks, so
the old values cannot simply be restored. Each pick therefore has a number and records, with the message it leased,
which counters grew and which it broke: the value they had reached, and which pick had broken them before. A ledger
keeps which pick broke each counter last. Undoing a pick is then exact, as if it had never been made:

    it broke a counter    the value the counter had reached is added to its present one; when another pick has broken
                          it since, to the value that this other pick recorded
    a counter grew        subtract one from the counter, or from the record of the pick that has broken it since

When that other pick has ended for good, its record is gone and nothing has to be changed.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from postroom.core.queue.picker import Pick, after_pick, effect_of
from postroom.core.queue.queues import QueuePolicy


class Broken(NamedTuple):
    """The value a counter had reached when a pick broke it, and the number of the pick that had broken it before."""

    reached: int
    before: int


class Turn(NamedTuple):
    """One pick: its number, the counters that grew, and those it broke."""

    number: int
    grew: tuple[str, ...]
    broke: Mapping[str, Broken]

    @property
    def form(self) -> dict[str, Any]:
        """The turn as it is stored with the message; `turn_of` reads it."""
        return {"number": self.number, "grew": self.grew, "broke": {name: [*each] for name, each in self.broke.items()}}


def turn_of(form: Mapping[str, Any]) -> Turn:
    broke = {name: Broken(*each) for name, each in form["broke"].items()}
    return Turn(form["number"], tuple(form["grew"]), broke)


class Ledger(NamedTuple):
    """The counters of a queue, the number of its last pick, and the last pick that broke each counter."""

    streaks: Mapping[str, int]
    picked: int = 0
    broken_by: Mapping[str, int] = {}


def record_picks(policy: QueuePolicy, ledger: Ledger, picks: Iterable[Pick]) -> tuple[Ledger, list[Turn]]:
    """The ledger after these picks, and a record of each."""
    streaks, number, broken_by = ledger.streaks, ledger.picked, dict(ledger.broken_by)
    turns: list[Turn] = []
    for picked in picks:
        number += 1
        grows, breaks = effect_of(policy, picked)
        broke = {name: Broken(streaks.get(name, 0), broken_by.get(name, 0)) for name in breaks}
        turns.append(Turn(number, grows, broke))
        broken_by |= dict.fromkeys(breaks, number)
        streaks = after_pick(policy, streaks, picked)
    return Ledger(streaks, number, broken_by), turns


def undo_picks(ledger: Ledger, returned: Sequence[Turn], held: Sequence[Turn]) -> tuple[Ledger, list[Turn]]:
    """The ledger as if the returned turns had never happened, and those of the held turns whose record has changed."""
    streaks, broken_by = dict(ledger.streaks), dict(ledger.broken_by)
    records = {turn.number: dict(turn.broke) for turn in held}
    for turn in sorted(returned, key=lambda each: each.number, reverse=True):
        for name, lost in turn.broke.items():
            if broken_by.get(name, 0) == turn.number:
                streaks[name] = streaks.get(name, 0) + lost.reached
                broken_by[name] = lost.before
            elif (later := _next_to_break(name, turn.number, records)) is not None:
                later[name] = Broken(later[name].reached + lost.reached, lost.before)
        for name in turn.grew:
            if broken_by.get(name, 0) < turn.number:
                streaks[name] = max(0, streaks.get(name, 0) - 1)
            elif (later := _next_to_break(name, turn.number, records)) is not None:
                later[name] = later[name]._replace(reached=later[name].reached - 1)
    changed = [turn._replace(broke=records[turn.number]) for turn in held if records[turn.number] != turn.broke]
    return Ledger(streaks, ledger.picked, broken_by), changed


def _next_to_break(name: str, number: int, records: Mapping[int, dict[str, Broken]]) -> dict[str, Broken] | None:
    """The record of the first pick that broke the counter after this one; None when that pick has ended."""
    found = (broke for later, broke in records.items() if later > number and name in broke)
    return next((broke for broke in found if broke[name].before <= number), None)
