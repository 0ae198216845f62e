"""The order of rules: the lowest priority first, and among equals the oldest. Moving a rule changes priorities.

A rule that moves gets a priority between its new neighbours. Where there is no room between them, the rules that
follow move on, and only as many as must.
"""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID


class RulePlace(NamedTuple):
    """The place of a rule: rules are sorted by priority, then by id."""

    priority: int
    id: UUID


def moved(places: Sequence[RulePlace], id: UUID, down: bool) -> list[RulePlace]:
    """Return the places that change so that the rule is one place further up or down; none at the end of the list.

    `places` are those of all rules, in order.
    """
    at = next(index for index, place in enumerate(places) if place.id == id)
    to = at + (1 if down else -1)
    if not 0 <= to < len(places):
        return []
    wanted = [*places[:at], *places[at + 1 :]]
    wanted.insert(to, places[at])
    return _fitted(wanted, to)


def _fitted(wanted: Sequence[RulePlace], moved: int) -> list[RulePlace]:
    """Return new priorities, from the moved rule on, which sort the rules as wanted."""
    before = wanted[moved - 1] if moved > 0 else None
    after = wanted[moved + 1] if moved + 1 < len(wanted) else None
    changed = [RulePlace(_between(before, wanted[moved].id, after), wanted[moved].id)]
    last = changed[0]
    for place in wanted[moved + 1 :]:
        if place > last:
            break
        last = RulePlace(last.priority if place.id > last.id else last.priority + 1, place.id)
        changed.append(last)
    return changed


def _between(before: RulePlace | None, id: UUID, after: RulePlace | None) -> int:
    """Return the lowest priority with which the rule comes after the one before; lower still if nothing is before."""
    if before is not None:
        return before.priority if id > before.id else before.priority + 1
    assert after is not None, "a rule that moves has a neighbour"
    return after.priority if id < after.id else after.priority - 1
