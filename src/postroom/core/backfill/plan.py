"""The plan: the categories of mail that are worth fetching from an archive, and how far back each."""

from datetime import date
from typing import NamedTuple

from postroom.core.backfill.window import EARLIEST


class PlannedBackfill(NamedTuple):
    """One backfill of the plan, with both days inclusive, and why it reaches so far back."""

    category: str
    date_from: date
    date_to: date
    reason: str


# Newsletters are left out: they are most of an archive and hold the least.
_YEARS: tuple[tuple[str, int | None, str], ...] = (
    ("finance", 7, "receipts and tax papers are kept for seven years"),
    ("health", None, "everything there is: old findings stay important"),
    ("relationship", 3, "people you have written with in the last three years"),
    ("travel", 2, "trips of the last two years"),
)


def planned_backfills(today: date) -> list[PlannedBackfill]:
    """The plan on a given day."""
    return [
        PlannedBackfill(category, EARLIEST if years is None else years_before(today, years), today, reason)
        for category, years, reason in _YEARS
    ]


def years_before(day: date, years: int) -> date:
    """The same day of an earlier year; 28 February for 29 February where that does not exist."""
    try:
        return day.replace(year=day.year - years)
    except ValueError:
        return day.replace(year=day.year - years, day=28)
