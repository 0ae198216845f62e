"""The one tier picker: urgent first, and nobody starves.

A queue has tiers, highest first; within a tier, accepted order. `streak[T]` counts the picks from T since the last
pick from any tier below T. When a streak has reached its guard and something below waits, the next pick comes from
the highest waiting tier below. If several are due, the highest decides and the others stay due.

Counting only unbroken runs of one tier, as one would at first, lets the lowest starve: with three full tiers, every
tenth pick of the top goes to the middle and breaks its run, so the bottom is never due. With a streak that only picks
from below can break, and all tiers full, a tier at depth d has its turn within about (guard + 1)^d picks; somewhat
later when tiers run empty and fill again at a bad moment.

**Aging** is computed where it matters, at the head of a tier, which is its oldest: a head that has waited too long
counts one tier higher, among whose messages the one accepted first goes first. Nothing is rewritten, and a streak
counts the tier that a message counted for.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from postroom.core.queues import Policy


class Head(NamedTuple):
    """A waiting message, as far as the picker looks at it. `seq` is its place in the accepted order.

    It is fresh until it is leased for the first time; what came back is handed out again as it was.
    """

    seq: int
    accepted_at: datetime
    fresh: bool = True


class Pick(NamedTuple):
    """Which message is next, and why it.

    `tier` is where it waited; `counted` is what it counted for, which differs when it was promoted.
    `starvation_override` tells that the guard, not the order, decided.
    """

    head: Head
    tier: str
    counted: str
    starvation_override: bool

    @property
    def promoted(self) -> bool:
        return self.tier != self.counted


class Batch(NamedTuple):
    """What to lease, in order, and the streaks it leaves. `summary` names a tier that is coalesced as the last pick."""

    picks: list[Pick]
    streaks: dict[str, int]
    summary: str | None


def pick(policy: Policy, heads: Mapping[str, Head], streaks: Mapping[str, int], now: datetime) -> Pick | None:
    """The head that comes next; None when nothing waits. `heads` holds the oldest of each tier that has any."""
    first: dict[str, tuple[Head, str]] = {}
    above: str | None = None
    for tier in policy.guards:
        if (head := heads.get(tier)) is not None:
            patience = policy.age_after.get(tier)
            aged = patience is not None and above is not None and now - head.accepted_at > patience
            counted = above if aged and above is not None else tier
            if counted not in first or head.seq < first[counted][0].seq:
                first[counted] = head, tier
        above = tier
    waiting = [tier for tier in policy.guards if tier in first]
    if not waiting:
        return None
    chosen = next(_due(policy, waiting, streaks), waiting[0])
    head, tier = first[chosen]
    return Pick(head, tier, chosen, starvation_override=chosen != waiting[0])


def _due(policy: Policy, waiting: Sequence[str], streaks: Mapping[str, int]) -> Iterator[str]:
    """For each tier whose guard is reached, highest first: the highest tier that waits below it."""
    for position, (tier, guard) in enumerate(policy.guards.items()):
        if streaks.get(tier, 0) >= guard:
            lower = policy.tiers[position + 1 :]
            yield from (each for each in waiting if each in lower)


def after_pick(policy: Policy, streaks: Mapping[str, int], counted: str) -> dict[str, int]:
    """The streaks once a message was picked: those of its tier grow, those above it begin anew."""
    after = {tier: streaks.get(tier, 0) for tier in policy.guards}
    _move_on(after, counted)
    return after


def _move_on(streaks: dict[str, int], counted: str) -> None:
    """`streaks` has every tier, highest first."""
    for tier in streaks:
        if tier == counted:
            streaks[tier] += 1
            return
        streaks[tier] = 0


def pick_many(
    policy: Policy, waiting: Mapping[str, Iterable[Head]], streaks: Mapping[str, int], now: datetime, most: int
) -> Batch:
    """Up to `most` picks, the same that as many single picks would make. `waiting` holds the oldest `most` of each
    tier. A tier that is coalesced ends the batch, since what is left of it afterwards is not known here.
    """
    lines = {tier: iter(line) for tier, line in waiting.items()}
    heads = {tier: head for tier, line in lines.items() if (head := next(line, None)) is not None}
    after = {tier: streaks.get(tier, 0) for tier in policy.guards}
    picks: list[Pick] = []
    while len(picks) < most and (picked := pick(policy, heads, after, now)) is not None:
        picks.append(picked)
        _move_on(after, picked.counted)
        if is_coalesced(policy, picked.tier, picked.head, now):
            return Batch(picks, after, picked.tier)
        if (head := next(lines[picked.tier], None)) is not None:
            heads[picked.tier] = head
        else:
            del heads[picked.tier]
    return Batch(picks, after, None)


def is_coalesced(policy: Policy, tier: str, head: Head, now: datetime) -> bool:
    """Whether the tier becomes one summary when this head of it is leased."""
    window = policy.coalesce_within.get(tier)
    return window is not None and head.fresh and now - head.accepted_at <= window


def stale(policy: Policy, tier: str, line: Iterable[Head], now: datetime) -> list[Head]:
    """The oldest of a tier that end unprocessed, up to the first that is young enough.

    What was in someone's hands before is spared: it came back to be handed out again.
    """
    patience = policy.auto_ack_after.get(tier)
    if patience is None:
        return []
    found: list[Head] = []
    for head in line:
        if now - head.accepted_at <= patience:
            break
        if head.fresh:
            found.append(head)
    return found
