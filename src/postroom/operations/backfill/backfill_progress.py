"""Backfills as people follow them: how far, how fast, what was spent against the cap, and when they end."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Annotated
from uuid import UUID

from postroom.core.backfill.cursor import BackfillCursor
from postroom.core.backfill.job import BackfillJob, FailedMessage, FoundMail
from postroom.core.backfill.standing import Standing, standing
from postroom.core.lifecycle import BACKFILL, BackfillStatus
from postroom.core.money import MICROS_PER_CENT
from postroom.core.views import Internal, Page, Shown
from postroom.operations.backfill.backfill import Backfills
from postroom.operations.people.audit import list_audit_of
from postroom.store.backfill import backfill
from postroom.store.backfill import backfill_estimates as estimates
from postroom.store.backfill.backfill_estimates import BackfillOutcome, StoredEstimate
from postroom.store.backfill.backfill_spend import SpentDay as SpentDay
from postroom.store.backfill.backfill_spend import spent_days
from postroom.store.engine import cursors
from postroom.store.engine.cursors import read_cursor
from postroom.store.people.audit import AuditView

OPEN: tuple[BackfillStatus, ...] = ("active", "pending", "cost_capped", "paused", "error")
"""The states of jobs that have not ended, those at work first."""
CHANNELS = (backfill.CHANNEL,)
MOST_OPEN = 20
MOST_DAYS = 14
MOST_FAILURES = 20
MOST_ENTRIES = 20


@dataclass(frozen=True, slots=True)
class BackfillLine:
    """A job, where it stands, and what was estimated."""

    job: BackfillJob
    standing: Standing
    estimate: Internal[StoredEstimate | None]
    at_day: Annotated[date | None, "The day of the mailbox that it has reached, going back."]
    left: Annotated[timedelta | None, "The time until it is done, at its speed and its daily cap; null if unknown."]

    @property
    def expected_micros(self) -> Shown[int | None]:
        return None if self.estimate is None else int(self.estimate.result["cost_micros"]["expected"])

    @property
    def may_pause(self) -> Shown[bool]:
        return BACKFILL.may(self.job.status, "paused")

    @property
    def may_resume(self) -> Shown[bool]:
        return BACKFILL.may(self.job.status, "pending")

    @property
    def may_cancel(self) -> Shown[bool]:
        return BACKFILL.may(self.job.status, "cancelled")


@dataclass(frozen=True, slots=True)
class BackfillDetail:
    """A job with its outcome so far beside the estimate, its days, its failures, and what was done to it."""

    line: BackfillLine
    outcome: BackfillOutcome
    days: Annotated[list[SpentDay], "The last days on which it cost something, the newest first."]
    failures: list[FailedMessage]
    audit: list[AuditView]
    found: list[FoundMail]


class BackfillReader:
    def __init__(self, backfills: Backfills) -> None:
        self._backfills = backfills
        self._database = backfills.database

    async def open_jobs(self) -> list[BackfillLine]:
        """Jobs that have not ended, those at work first."""
        found: list[BackfillJob] = []
        for status in OPEN:
            found += await self._backfills.list_jobs(MOST_OPEN, status=status)
        return await self._lines(found)

    async def history(
        self,
        before: str | None,
        most: int,
        *,
        endpoint_identity: str | None = None,
        status: BackfillStatus | None = None,
    ) -> Page[BackfillLine]:
        """Jobs, newest first. Raises BadInput for a `before` that is no cursor."""
        last = None if before is None else read_cursor(before)
        jobs = await self._backfills.list_jobs(
            most + 1, endpoint_identity=endpoint_identity, status=status, before=last
        )
        shown = jobs[:most]
        more = str(cursors.Cursor(shown[-1].created_at, shown[-1].id)) if len(jobs) > most else None
        return Page(await self._lines(shown), more)

    async def detail(self, id: UUID) -> BackfillDetail:
        """Raises NotFound."""
        job = await self._backfills.load(id)
        [line] = await self._lines([job])
        return BackfillDetail(
            line,
            await self._database.run(estimates.backfill_outcome(id)),
            await self._database.run(spent_days(id, MOST_DAYS)),
            await self._backfills.failures(id, MOST_FAILURES),
            await list_audit_of(self._database, "backfill", str(id), MOST_ENTRIES),
            await self._backfills.found(id),
        )

    async def _lines(self, jobs: Sequence[BackfillJob]) -> list[BackfillLine]:
        ids = [job.estimate_id for job in jobs if job.estimate_id is not None]
        known = {each.id: each for each in await self._database.run(estimates.estimates_by_id(ids))}
        now = self._backfills.clock()
        return [_line(job, known.get(job.estimate_id) if job.estimate_id else None, now) for job in jobs]


def _line(job: BackfillJob, estimate: StoredEstimate | None, now: datetime) -> BackfillLine:
    expected = None if estimate is None else int(estimate.result["to_read"]["expected"])
    found = standing(job, expected, None, now)
    cursor = BackfillCursor.stored(job.cursor)
    return BackfillLine(job, found, estimate, None if cursor is None else cursor.day, _time_left(job, estimate, found))


def _time_left(job: BackfillJob, estimate: StoredEstimate | None, found: Standing) -> timedelta | None:
    """The longer of the time at its speed, and of the days that the cap makes of the rest of the cost."""
    if found.left is None or estimate is None:
        return None
    rest = max(0, int(estimate.result["cost_micros"]["expected"]) - job.spent_micros)
    cap = max(1, job.daily_cost_cap_cents * MICROS_PER_CENT)
    return max(found.left, timedelta(days=rest / cap))
