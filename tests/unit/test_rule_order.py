"""Moving a rule: it lands where it was put, no other two change places, and as few priorities as possible change."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from postroom.core.rules.order import RulePlace, moved

places = st.lists(
    st.tuples(st.integers(-3, 6), st.integers(1, 12)).map(lambda pair: RulePlace(pair[0], UUID(int=pair[1]))),
    min_size=1,
    max_size=9,
    unique_by=lambda place: place.id,
).map(sorted)


def after(before: list[RulePlace], id: UUID, down: bool) -> list[UUID]:
    changed = {place.id: place for place in moved(before, id, down)}
    return [place.id for place in sorted(changed.get(place.id, place) for place in before)]


@given(places, st.data(), st.booleans())
def test_a_rule_changes_places_with_its_neighbour_and_with_nobody_else(
    before: list[RulePlace], data: st.DataObject, down: bool
) -> None:
    at = data.draw(st.integers(0, len(before) - 1))
    wanted = [place.id for place in before]
    to = at + (1 if down else -1)
    if 0 <= to < len(before):
        wanted[at], wanted[to] = wanted[to], wanted[at]
    assert after(before, before[at].id, down) == wanted


def test_where_there_is_room_only_the_moved_rule_changes() -> None:
    first, second, third = (RulePlace(10 * number, UUID(int=number)) for number in (1, 2, 3))
    assert moved([first, second, third], third.id, down=False) == [RulePlace(10, third.id)]
    assert [place.id for place in moved([first, second, third], first.id, down=True)] == [first.id]


def test_at_the_ends_nothing_changes() -> None:
    only = [RulePlace(1, UUID(int=1)), RulePlace(2, UUID(int=2))]
    assert moved(only, only[0].id, down=False) == []
    assert moved(only, only[1].id, down=True) == []
