"""Requests of people about jobs, each together with its entry in the audit log."""

from datetime import datetime
from uuid import UUID

from postroom.store import job_filters, jobs
from postroom.store.audit import Signature, auditing
from postroom.store.engine.database import Script, transaction


@transaction
def retry_for(id: UUID, signed: Signature, now: datetime) -> Script[None]:
    """Queue a job again, as `retry_job` does."""
    yield from jobs.retry_job.script(id, now)
    yield from auditing(signed.under("job.retry", "job", str(id)), now)


@transaction
def cancel_for(id: UUID, signed: Signature, now: datetime) -> Script[str]:
    """Cancel a job, as `cancel_job` does."""
    outcome = yield from jobs.cancel_job.script(id, now)
    yield from auditing(signed.under("job.cancel", "job", str(id), after={"outcome": outcome}), now)
    return outcome


@transaction
def dismiss_for(id: UUID, signed: Signature, now: datetime) -> Script[int]:
    """Dismiss a failed job. Zero, and no entry, if it has not failed."""
    dismissed = yield from job_filters.dismiss_jobs.script([id], now)
    if dismissed:
        yield from auditing(signed.under("job.dismiss", "job", str(id)), now)
    return dismissed
