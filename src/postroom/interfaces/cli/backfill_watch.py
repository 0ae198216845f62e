"""Watching a backfill: a bar on a terminal, lines elsewhere, until it no longer goes on by itself."""

import asyncio
import shutil
import sys
from collections import deque
from datetime import UTC, datetime, timedelta
from uuid import UUID

import typer

from postroom.core.backfill.job import BackfillJob
from postroom.core.backfill.standing import Standing, standing
from postroom.interfaces.cli.backfill_output import ended_line, progress_line
from postroom.interfaces.cli.output import show_json
from postroom.operations.backfill.backfill import backfills_of
from postroom.operations.backfill.backfill_estimate import estimates_of
from postroom.operations.installation.database import Database
from postroom.settings.reading import Settings

HOUR = timedelta(hours=1)
# The speed is that of the last minutes, once there are enough of them.
REMEMBERED = timedelta(minutes=5)
ENOUGH = timedelta(seconds=20)


class RecentSpeed:
    """How many messages per hour were read in the last minutes."""

    def __init__(self) -> None:
        self._seen: deque[tuple[datetime, int]] = deque()

    def per_hour(self, read: int, now: datetime) -> float | None:
        """The speed with this count now; None while too little was seen."""
        self._seen.append((now, read))
        while now - self._seen[0][0] > REMEMBERED:
            self._seen.popleft()
        since, before = self._seen[0]
        return (read - before) / ((now - since) / HOUR) if now - since >= ENOUGH else None


async def watch_backfill(
    database: Database, settings: Settings, id: UUID, every_s: float, as_json: bool
) -> BackfillJob:
    """Show the progress of a backfill until it does not go on by itself; return it then. Raises NotFound."""
    backfills, speed = backfills_of(database, settings), RecentSpeed()
    expected = (await estimates_of(database, settings).outcome(id)).expected_to_read
    show = _Shown(as_json)
    while True:
        job, now = await backfills.load(id), datetime.now(UTC)
        read = job.rows_processed + job.rows_skipped
        show.progress(job, standing(job, expected, speed.per_hour(read, now), now))
        if not _goes_on(job):
            show.end(job)
            return job
        await asyncio.sleep(every_s)


def _goes_on(job: BackfillJob) -> bool:
    return job.status in ("pending", "active") or (job.status == "cost_capped" and job.resume_daily)


class _Shown:
    """Prints progress: JSON or lines when something has changed, or one line over the previous one on a terminal."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._is_bar = not as_json and sys.stdout.isatty()
        self._last: object = None

    def progress(self, job: BackfillJob, at: Standing) -> None:
        changes = (job.status, at.read, job.spent_today_micros, job.spent_micros, job.messages_waiting)
        if self._is_bar:
            # A line that is wider than the terminal could not be written over.
            line = progress_line(job, at)[: shutil.get_terminal_size().columns - 1]
            typer.echo(f"\r\x1b[K{line}", nl=False)
        elif changes != self._last:
            show_json(_row(job, at)) if self._as_json else typer.echo(progress_line(job, at))
        self._last = changes

    def end(self, job: BackfillJob) -> None:
        if not self._as_json:
            typer.echo(f"\n{ended_line(job)}" if self._is_bar else ended_line(job))


def _row(job: BackfillJob, at: Standing) -> dict[str, object]:
    return {
        "id": job.id,
        "status": job.status,
        "read": at.read,
        "expected": at.expected,
        "percent": at.percent,
        "per_hour": round(at.per_hour, 1),
        "seconds_left": None if at.left is None else round(at.left.total_seconds()),
        "rows_processed": job.rows_processed,
        "rows_skipped": job.rows_skipped,
        "cost_spent_cents": job.cost_spent_cents,
        "spent_micros": job.spent_micros,
        "expected_micros": job.expected_micros,
        "spent_today_micros": job.spent_today_micros,
        "messages_waiting": job.messages_waiting,
        "error": job.error,
    }
