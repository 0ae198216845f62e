"""The plan: the windows that are worth fetching, on any day."""

from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from postroom.core.backfill.plan import planned_backfills, years_before
from postroom.core.backfill.window import EARLIEST
from postroom.core.mail.categories import CATEGORIES

days = st.dates(date(1990, 1, 1), date(2100, 12, 31))


def test_the_windows_reach_as_far_back_as_each_category_is_worth():
    plan = {each.category: (each.date_from, each.date_to) for each in planned_backfills(date(2026, 11, 16))}
    today = date(2026, 11, 16)
    assert plan == {
        "finance": (date(2019, 11, 16), today),
        "health": (EARLIEST, today),
        "relationship": (date(2023, 11, 16), today),
        "travel": (date(2024, 11, 16), today),
    }


def test_newsletters_are_skipped_and_every_category_exists():
    names = {each.category for each in planned_backfills(date(2026, 11, 16))}
    assert names == CATEGORIES.keys() - {"newsletters"}


def test_a_leap_day_becomes_the_28th_where_there_is_none():
    assert years_before(date(2028, 2, 29), 7) == date(2021, 2, 28)
    assert years_before(date(2028, 2, 29), 4) == date(2024, 2, 29)
    assert years_before(date(2028, 3, 1), 7) == date(2021, 3, 1)


@given(days, st.integers(1, 20))
def test_years_before_any_day_are_at_most_a_leap_day_apart_from_their_length(day: date, years: int):
    length = day - years_before(day, years)
    assert timedelta(days=365 * years) <= length <= timedelta(days=366 * years)


@given(days)
def test_every_window_ends_on_the_day_and_is_in_order(day: date):
    assert all(each.date_from <= each.date_to == day for each in planned_backfills(day))
