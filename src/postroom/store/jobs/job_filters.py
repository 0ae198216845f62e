"""Jobs by type, state, error and account, and dismissing those that failed."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from postroom.core.lifecycle import JobState
from postroom.store.engine.codecs import as_uuid
from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.engine.reading import read_rows
from postroom.store.jobs.job_lists import literally
from postroom.store.jobs.job_steps import record_events


class JobFilter(NamedTuple):
    """Jobs in one state; with a type, an account and a part of their last error, in any case, only those."""

    state: JobState
    type: str | None = None
    error: str | None = None
    account_id: UUID | None = None


class JobMatch(NamedTuple):
    """A job that a filter finds."""

    id: UUID
    type: str


@query
def matching_jobs(wanted: JobFilter, most: int) -> Script[list[JobMatch]]:
    """The jobs that a filter finds, oldest first."""
    account = None if wanted.account_id is None else str(wanted.account_id)
    pattern = None if wanted.error is None else f"%{literally(wanted.error.lower())}%"
    return read_rows(JobMatch, (yield sql("select_matching_jobs", wanted.state, wanted.type, pattern, account, most)))


@transaction
def dismiss_jobs(ids: Sequence[UUID], now: datetime) -> Script[int]:
    """Count failed jobs as canceled, so that nobody is asked about them again; return how many were failed."""
    rows = yield sql("dismiss_jobs", list(ids), now)
    yield from record_events("dismissed", [(as_uuid(id), 0, {"by": "user"}) for (id,) in rows], now)
    return len(rows)
