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
    return _fit(wanted, to)


def _fit(wanted: Sequence[RulePlace], moved: int) -> list[RulePlace]:
    """Return new priorities, from the moved rule on, which sort the rules as wanted."""
    id = wanted[moved].id
    first = _after(wanted[moved - 1], id) if moved > 0 else _before(wanted[1], id)
    changed = [first]
    for place in wanted[moved + 1 :]:
        if place > changed[-1]:
            break
        changed.append(_after(changed[-1], place.id))
    return changed


def _after(place: RulePlace, id: UUID) -> RulePlace:
    """Return the first place for the rule after this one."""
    return RulePlace(place.priority if id > place.id else place.priority + 1, id)


def _before(place: RulePlace, id: UUID) -> RulePlace:
    """Return the last place for the rule before this one."""
    return RulePlace(place.priority if id < place.id else place.priority - 1, id)
