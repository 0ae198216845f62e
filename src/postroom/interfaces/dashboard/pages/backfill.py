"""Backfills: those at work with their progress and spend, those before, and each with its estimate beside the truth."""

from collections.abc import Mapping
from datetime import date, timedelta
from uuid import UUID

from postroom.core.backfill.job import FoundMail
from postroom.core.days import day_in, start_of, zone_named
from postroom.core.errors import NotFound
from postroom.interfaces.dashboard.charts import Part, Series
from postroom.interfaces.dashboard.ids import read_id
from postroom.interfaces.dashboard.page import DashboardPage
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.dashboard.visit import Visit
from postroom.operations.backfill.backfill_progress import CHANNELS, MOST_DAYS, SpentDay
from postroom.words.backfill import MICROS_PER_DOLLAR, WORDS

JOBS_SHOWN = 25
CENTS_PER_DOLLAR = 100


def pages(site: Site) -> list[DashboardPage]:
    return [BackfillPage(site), BackfillJobPage(site)]


class BackfillPage(DashboardPage):
    address, title, template = "/backfill", "Backfill", "backfill.html"
    channels = CHANNELS

    async def read(self, visit: Visit) -> Mapping[str, object]:
        before = visit.text("before")
        history = await self._parts.backfill_reader.history(before, JOBS_SHOWN)
        return {
            "open": await self._parts.backfill_reader.open_jobs(),
            "history": history.lines,
            "older": visit.with_filters(before=history.next) if history.next else None,
            "newest": visit.with_filters(before=None) if before else None,
            "part": Part,
            **WORDS,
        }


class BackfillJobPage(DashboardPage):
    """One backfill: its outcome beside its estimate, its days, its failures, and who did what to it."""

    address, title, template = "/backfill/{job}", "Backfill", "backfill/job.html"
    channels = CHANNELS

    async def read(self, visit: Visit) -> Mapping[str, object]:
        detail = await self._parts.backfill_reader.detail(job_id(visit.parameters))
        days, zone = _each_day(detail.days), zone_named(self._settings.backfill.time_zone)
        return {
            "line": detail.line,
            "outcome": detail.outcome,
            "failures": detail.failures,
            "found": {
                year: _by_category(detail.found, year) for year in dict.fromkeys(each.year for each in detail.found)
            },
            "audit": detail.audit,
            "day_moments": [start_of(day, zone) for day in days],
            "day_zone": zone,
            "day_series": [
                Series("spent, in dollars", _dollars(days, day_in(detail.line.job.created_at, zone)), "hist")
            ],
            "cap_dollars": detail.line.job.daily_cost_cap_cents / CENTS_PER_DOLLAR,
            "part": Part,
            **WORDS,
        }


def _dollars(days: Mapping[date, int], created: date) -> list[float | None]:
    """The cost of each day; None before there was the backfill."""
    return [micros / MICROS_PER_DOLLAR if day >= created else None for day, micros in days.items()]


def _by_category(found: list[FoundMail], year: int) -> dict[str, int]:
    return {each.category: each.messages for each in found if each.year == year}


def _each_day(spent: list[SpentDay]) -> dict[date, int]:
    """The cost of each day up to the last one with spend, also of days that cost nothing."""
    if not spent:
        return {}
    last, known = date.fromisoformat(spent[0].day), {date.fromisoformat(each.day): each.micros for each in spent}
    days = [last - timedelta(days=back) for back in range(MOST_DAYS - 1, -1, -1)]
    return {day: known.get(day, 0) for day in days}


def job_id(parameters: Mapping[str, str]) -> UUID:
    return read_id(parameters["job"], NotFound("there is no such backfill"))
