"""How far a backfill has come, how fast it is, and how long it will still take."""

from datetime import datetime, timedelta
from typing import NamedTuple

from postroom.core.backfill.cursor import BackfillCursor
from postroom.core.backfill.job import BackfillJob
from postroom.core.views import Internal

HOUR = timedelta(hours=1)
# A share of 1 is for jobs that are completed: an estimate may be too low.
ALMOST = 0.99


class Standing(NamedTuple):
    """`expected` is the estimated number of messages, if there is an estimate; `share` is the finished part, from 0 to
    1.
    """

    read: int
    expected: int | None
    share: float
    per_hour: float
    left: Internal[timedelta | None]

    @property
    def percent(self) -> int:
        return int(self.share * 100)


def standing(job: BackfillJob, expected: int | None, recent_per_hour: float | None, now: datetime) -> Standing:
    """The progress of the job. Without a recent speed, its average counts: until now while it works, and until its last
    step afterwards.
    """
    read = job.rows_processed + job.rows_skipped
    per_hour = recent_per_hour if recent_per_hour is not None else _lifetime_per_hour(job, read, now)
    if job.status == "completed":
        return Standing(read, read, 1.0, per_hour, timedelta(0))
    if expected is None:
        return Standing(read, None, _share_of_days(job), per_hour, None)
    share = min(ALMOST, read / expected) if expected else ALMOST
    speed = per_hour or job.rate_limit_per_hour
    return Standing(read, expected, share, per_hour, max(0, expected - read) / speed * HOUR)


def _lifetime_per_hour(job: BackfillJob, read: int, now: datetime) -> float:
    if job.started_at is None:
        return 0.0
    until = now if job.status == "active" else job.completed_at or job.updated_at
    return read / max((until - job.started_at) / HOUR, 1 / 60)


def _share_of_days(job: BackfillJob) -> float:
    """The share of the window's days that are done."""
    cursor = BackfillCursor.stored(job.cursor)
    if cursor is None:
        return 0.0
    return min(ALMOST, (job.date_to - cursor.day).days / ((job.date_to - job.date_from).days + 1))
