"""The tier picker: urgent messages first, without starvation.

A queue has tiers, highest first; within a tier, messages are in accepted order. `streak[T]` counts the picks from T
since the last pick from any tier below T. When a streak has reached its guard and something waits below, the next pick
comes from the highest waiting tier below. If several tiers are due, the highest decides and the others stay due.

The obvious way, counting only unbroken runs of one tier, starves the lowest: with three full tiers, every tenth pick of
the top goes to the middle and breaks its run, so the bottom is never due. When only picks from below break a streak,
and all tiers are full, a tier at depth d gets its turn within about (guard + 1)^d picks; somewhat later when tiers run
empty and fill again at a bad moment.

**Aging** is computed at the head of a tier, its oldest message: a head that has waited too long counts one tier higher.
That tier's own messages go first, and after every three of them that went ahead of an aged one (or as many as the
tier's guard, if that is less) the aged one gets its turn. So neither old nor new messages bury the others. Nothing is
rewritten; a streak counts the tier that a message counted for.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

from postroom.core.queue.queues import QueuePolicy

OWN_PER_AGED = 3


class Head(NamedTuple):
    """A waiting message, as the picker sees it. `seq` is its place in the accepted order.

    A message is fresh until it is first leased; one that came back is neither coalesced nor auto-acked.
    """

    seq: int
    accepted_at: datetime
    fresh: bool = True


class Pick(NamedTuple):
    """The message that is next, and why.

    `tier` is where it waited; `counted` is the tier it counted for, which differs when it was promoted.
    `starvation_override` says that a guard decided, not the order; `passed_aged`, that an aged message waited for the
    same turn.
    """

    head: Head
    tier: str
    counted: str
    starvation_override: bool
    passed_aged: bool = False

    @property
    def promoted(self) -> bool:
        return self.tier != self.counted


class Batch(NamedTuple):
    """The messages to lease, in order, and the streaks afterwards. `summary` is a tier that the last pick coalesces."""

    picks: list[Pick]
    streaks: Mapping[str, int]
    summary: str | None


def own_turns(tier: str) -> str:
    """The name of the counter, kept beside the streaks, of a tier's own messages that went ahead of an aged one."""
    return f"{tier} own"


def pick(policy: QueuePolicy, heads: Mapping[str, Head], streaks: Mapping[str, int], now: datetime) -> Pick | None:
    """The head that comes next; None when nothing waits. `heads` holds the oldest message of each non-empty tier."""
    aged = {above: tier for above, tier in _neighbours(policy) if _has_aged(policy, tier, heads.get(tier), now)}
    own = heads.keys() - set(aged.values())
    waiting = [tier for tier in policy.guards if tier in own or tier in aged]
    if not waiting:
        return None
    chosen = next(_due(policy, waiting, streaks), waiting[0])
    both = chosen in own and chosen in aged
    is_aged = chosen not in own or (both and streaks.get(own_turns(chosen), 0) >= _own_per_aged(policy, chosen))
    tier = aged[chosen] if is_aged else chosen
    return Pick(heads[tier], tier, chosen, chosen != waiting[0], passed_aged=both and not is_aged)


def _neighbours(policy: QueuePolicy) -> Iterator[tuple[str, str]]:
    """Pairs of adjacent tiers, the higher first."""
    return pairwise(policy.guards)


def _has_aged(policy: QueuePolicy, tier: str, head: Head | None, now: datetime) -> bool:
    patience = policy.age_after.get(tier)
    return head is not None and patience is not None and now - head.accepted_at > patience


def _own_per_aged(policy: QueuePolicy, tier: str) -> int:
    """How many of a tier's own go ahead of an aged message: at most its guard, or aging would be a loss."""
    return min(OWN_PER_AGED, policy.guards[tier])


def _due(policy: QueuePolicy, waiting: Sequence[str], streaks: Mapping[str, int]) -> Iterator[str]:
    """For each tier whose guard is reached, highest first: the waiting tiers below it."""
    for position, (tier, guard) in enumerate(policy.guards.items()):
        if streaks.get(tier, 0) >= guard:
            lower = policy.tiers[position + 1 :]
            yield from (each for each in waiting if each in lower)


class Effect(NamedTuple):
    """The counters of a queue, streaks and own turns, that a pick increments and resets."""

    grows: tuple[str, ...]
    breaks: tuple[str, ...]


def effect_of(policy: QueuePolicy, picked: Pick) -> Effect:
    """The streak of the tier it counted for grows and those above are reset; an aged pick also resets the own turns."""
    above = policy.tiers[: policy.tiers.index(picked.counted)]
    own = own_turns(picked.counted)
    grows = (picked.counted, own) if picked.passed_aged else (picked.counted,)
    return Effect(grows, (*above, own) if picked.promoted else above)


def after_pick(policy: QueuePolicy, streaks: Mapping[str, int], picked: Pick) -> dict[str, int]:
    """The counters after a pick, without those of tiers that no longer exist."""
    names = (*policy.guards, *(own_turns(tier) for tier in policy.guards if own_turns(tier) in streaks))
    grows, breaks = effect_of(policy, picked)
    after = {name: 0 if name in breaks else streaks.get(name, 0) for name in names}
    return after | {name: after.get(name, 0) + 1 for name in grows}


def pick_many(
    policy: QueuePolicy, waiting: Mapping[str, Iterable[Head]], streaks: Mapping[str, int], now: datetime, most: int
) -> Batch:
    """Up to `most` picks, the same as that many single picks. `waiting` holds the oldest `most` messages of each tier.
    A coalesced tier ends the batch, since the rest of the tier is not known here.
    """
    lines = {tier: iter(line) for tier, line in waiting.items()}
    heads = {tier: head for tier, line in lines.items() if (head := next(line, None)) is not None}
    after: Mapping[str, int] = streaks
    picks: list[Pick] = []
    while len(picks) < most and (picked := pick(policy, heads, after, now)) is not None:
        picks.append(picked)
        after = after_pick(policy, after, picked)
        if is_coalesced(policy, picked.tier, picked.head, now):
            return Batch(picks, after, picked.tier)
        if (head := next(lines[picked.tier], None)) is not None:
            heads[picked.tier] = head
        else:
            del heads[picked.tier]
    return Batch(picks, after, None)


def is_coalesced(policy: QueuePolicy, tier: str, head: Head, now: datetime) -> bool:
    """Whether leasing this head turns its tier into one summary."""
    window = policy.coalesce_within.get(tier)
    return window is not None and head.fresh and now - head.accepted_at <= window


def stale(policy: QueuePolicy, tier: str, line: Iterable[Head], now: datetime) -> list[Head]:
    """The oldest messages of a tier that are auto-acked, up to the first that is young enough.

    Messages that were leased before are spared: they came back to be delivered again.
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
