"""The one tier picker: urgent first, and nobody starves.

A queue has tiers, highest first; within a tier, accepted order. `streak[T]` counts the picks from T since the last
pick from any tier below T. When a streak has reached its guard and something below waits, the next pick comes from
the highest waiting tier below. If several are due, the highest decides and the others stay due.

Counting only unbroken runs of one tier, as one would at first, lets the lowest starve: with three full tiers, every
tenth pick of the top goes to the middle and breaks its run, so the bottom is never due. A streak that only picks from
below can break gives a waiting tier at depth d a turn within (guard + 1)^d picks.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Policy:
    """The tiers of one queue, highest first, with the guard of each."""

    queue: str
    guards: Mapping[str, int]

    @property
    def tiers(self) -> tuple[str, ...]:
        return tuple(self.guards)


EMAIL = Policy("email", {"high_priority": 10, "interactive": 10, "default": 10, "history": 10})


class Pick(NamedTuple):
    """Which tier is next, and whether the guard, not the order, decided."""

    tier: str
    starvation_override: bool


def pick(policy: Policy, waiting: frozenset[str], streaks: Mapping[str, int]) -> Pick | None:
    """The tier whose head comes next; None when nothing waits."""
    tiers = [tier for tier in policy.tiers if tier in waiting]
    if not tiers:
        return None
    for position, tier in enumerate(policy.tiers):
        below = [lower for lower in policy.tiers[position + 1 :] if lower in waiting]
        if below and streaks.get(tier, 0) >= policy.guards[tier]:
            return Pick(below[0], starvation_override=below[0] != tiers[0])
    return Pick(tiers[0], starvation_override=False)


def after_pick(policy: Policy, streaks: Mapping[str, int], tier: str) -> dict[str, int]:
    """The streaks once a message of this tier was picked: its own grows, those above it begin anew."""
    position = policy.tiers.index(tier)
    above = set(policy.tiers[:position])
    return {each: 0 if each in above else streaks.get(each, 0) + (1 if each == tier else 0) for each in policy.tiers}
