"""The window and the cursor of a backfill."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.backfill.cursor import BackfillCursor, parse_cursor
from postroom.core.backfill.window import Window, checked_window
from postroom.core.days import day_in, zone_named
from postroom.core.errors import BadInput

BERLIN = ZoneInfo("Europe/Berlin")
TODAY = date(2026, 11, 16)


def test_both_days_of_the_window_are_inside_in_its_own_zone() -> None:
    window = checked_window(date(2025, 3, 30), date(2025, 3, 31), BERLIN, TODAY)
    assert window.start == datetime(2025, 3, 29, 23, tzinfo=UTC)
    assert window.end == datetime(2025, 3, 31, 22, tzinfo=UTC)  # the clocks went forward in between
    assert window.contains(window.start)
    assert not window.contains(window.end)
    assert window.contains(window.end - timedelta(microseconds=1))


@pytest.mark.parametrize(
    ("date_from", "date_to", "field"),
    [
        (date(2025, 2, 1), date(2025, 1, 1), "date_from"),
        (date(2025, 1, 1), date(2026, 11, 17), "date_to"),
        (date(1969, 12, 31), date(2025, 1, 1), "date_from"),
    ],
)
def test_a_window_that_cannot_be_is_refused(date_from: date, date_to: date, field: str) -> None:
    with pytest.raises(BadInput) as refused:
        checked_window(date_from, date_to, BERLIN, TODAY)
    assert refused.value.field == field


@pytest.mark.parametrize("name", ["", "Mars/Olympus", "../../etc/passwd", "a\0b", "x" * 5000])
def test_an_unknown_time_zone_is_refused(name: str) -> None:
    with pytest.raises(BadInput):
        zone_named(name)


days = st.dates(date(1970, 1, 2), date(2026, 1, 1))


@given(days, st.integers(0, 400), st.sampled_from(["UTC", "Europe/Berlin", "Pacific/Apia", "America/St_Johns"]))
def test_the_spans_of_a_walk_cover_each_day_of_the_window_once(date_from: date, more: int, zone: str) -> None:
    window = Window(date_from, date_from + timedelta(days=more), ZoneInfo(zone))
    cursor, covered = BackfillCursor.first(window), list[date]()
    while not cursor.at_end(window):
        span = cursor.span(window)
        covered += [span.date_to - timedelta(days=each) for each in range(span.days)]
        following = cursor.next_span(window)
        assert cursor.is_behind(following)
        assert not following.is_behind(cursor)
        assert parse_cursor(following.as_json(), window) == following
        cursor = following
    assert covered == [window.date_to - timedelta(days=each) for each in range(window.days)]


@given(st.sets(st.text("0123456789abcdef", min_size=1, max_size=6), max_size=30), st.data())
def test_a_resumed_span_continues_below_the_last_message_done(ids: set[str], data: st.DataObject) -> None:
    window = Window(date(2025, 1, 1), date(2025, 1, 31), ZoneInfo("UTC"))
    cursor = BackfillCursor.first(window)
    order = cursor.left(ids)
    assert sorted(order) == sorted(ids)
    count = data.draw(st.integers(0, len(order)))
    for id in order[:count]:
        after = cursor.done(id)
        assert not after.is_behind(cursor)
        cursor = after
    gone = data.draw(st.sets(st.sampled_from(sorted(ids)))) if ids else set[str]()
    assert cursor.left(ids - gone) == [id for id in order[count:] if id not in gone]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"day": "2025-01-31"},
        {"day": "2025-01-31", "since": "2025-01-01", "page": "x"},
        {"day": "2025-02-01", "since": "2025-01-01", "id": ""},
        {"day": "2025-01-01", "since": "2025-01-31", "id": ""},
        {"day": "2024-12-30", "since": "2024-12-30", "id": ""},
        {"day": "20250131", "since": "2025-01-01", "id": ""},
        {"day": 5, "since": "2025-01-01", "id": ""},
        {"day": "2025-01-31", "since": "2025-01-01", "id": 7},
        {"day": "2025-01-31", "since": "2025-01-01", "id": "a b"},
        {"day": "2025-01-31", "since": "2025-01-01", "id": "x" * 513},
        {"day": "2024-12-31", "since": "2024-12-31", "id": "abc"},
    ],
)
def test_a_cursor_that_makes_no_sense_is_refused(given: dict[str, object]) -> None:
    window = Window(date(2025, 1, 1), date(2025, 1, 31), ZoneInfo("UTC"))
    with pytest.raises(BadInput) as refused:
        parse_cursor(given, window)
    assert refused.value.field.startswith("cursor")


def test_the_day_of_a_moment_is_that_of_the_zone() -> None:
    late = datetime(2025, 6, 30, 23, 30, tzinfo=UTC)
    assert day_in(late, ZoneInfo("UTC")) == date(2025, 6, 30)
    assert day_in(late, BERLIN) == date(2025, 7, 1)
