"""Whether outgoing mail arrives: one judgement of the queue and of what became of recipients, for every interface.

Each trouble alone makes delivery degraded, or failing where mail does not arrive:

    long        more than 80 % of the largest queue waits
    late        a mail has been due for more than 30 minutes; failing if the queue is long too
    stuck       nothing was delivered, and 5 attempts or more failed or were put off: failing
    failed      more than 5 % of at least 20 recipients got nothing; failing from 25 % on
    put_off     more than half of at least 20 attempts were put off
    held        a sender is held back
    paused      a destination is paused

Recipients and attempts are those of this hour and the one before. A few bounces are everyday life: hence the least
numbers. `outbound.md` states all of these.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, NamedTuple

from postroom.core.outbound.health import OLD, is_long

Condition = Literal["healthy", "degraded", "failing"]
TroubleKind = Literal["stuck", "failed", "late", "long", "put_off", "held", "paused"]
RECENT = timedelta(hours=1)
FEWEST_STUCK = 5
FEWEST_COUNTED = 20
MANY_FAILED = 0.05
MOST_FAILED = 0.25
MANY_PUT_OFF = 0.5


class DeliveryFacts(NamedTuple):
    """The queue now, and the results of the last hours: counts of recipients that got the mail, of attempts that were
    put off, and of recipients that got nothing; `reasons` are the classes of bounce of the last two."""

    queued: int
    oldest_wait: timedelta
    max_queue: int
    sent: int = 0
    put_off: int = 0
    failed: int = 0
    reasons: Mapping[str, int] = {}
    held_senders: int = 0
    held_mail: int = 0
    paused: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Trouble:
    """One cause: so many of so many, and what it is mostly about: a class of bounce, a destination, or seconds."""

    kind: TroubleKind
    is_failing: bool
    count: int
    of: int = 0
    about: str = ""


@dataclass(frozen=True, slots=True)
class DeliveryHealth:
    """The judgement, with every cause; the worst is first."""

    condition: Condition
    troubles: tuple[Trouble, ...]


def delivery_health(facts: DeliveryFacts) -> DeliveryHealth:
    """Judge by the thresholds above."""
    found = sorted(_troubles(facts), key=lambda each: not each.is_failing)
    failing = any(each.is_failing for each in found)
    return DeliveryHealth("failing" if failing else "degraded" if found else "healthy", tuple(found))


def is_many_failed(failed: int, ended: int) -> bool:
    """Whether so many recipients of these got nothing that it is worth a look."""
    return ended >= FEWEST_COUNTED and failed > MANY_FAILED * ended


def _troubles(facts: DeliveryFacts) -> list[Trouble]:
    found: list[Trouble] = []
    attempts = facts.sent + facts.put_off + facts.failed
    ended, reason = facts.sent + facts.failed, _most_common(facts.reasons)
    long, late = is_long(facts.queued, facts.max_queue), facts.oldest_wait > OLD
    if not facts.sent and attempts >= FEWEST_STUCK:
        found.append(Trouble("stuck", True, attempts, attempts, reason))
    elif is_many_failed(facts.failed, ended):
        found.append(Trouble("failed", facts.failed > MOST_FAILED * ended, facts.failed, ended, reason))
    if late:
        found.append(Trouble("late", long, facts.queued, about=str(int(facts.oldest_wait.total_seconds()))))
    if long:
        found.append(Trouble("long", False, facts.queued, facts.max_queue))
    if facts.sent and attempts >= FEWEST_COUNTED and facts.put_off > MANY_PUT_OFF * attempts:
        found.append(Trouble("put_off", False, facts.put_off, attempts, reason))
    if facts.held_senders:
        found.append(Trouble("held", False, facts.held_senders, facts.held_mail))
    if facts.paused:
        found.append(Trouble("paused", False, len(facts.paused), about=facts.paused[0]))
    return found


def _most_common(reasons: Mapping[str, int]) -> str:
    named = {name: count for name, count in reasons.items() if name}
    return max(named, key=lambda name: (named[name], name), default="")
