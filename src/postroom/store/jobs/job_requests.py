"""Requests of people about jobs, each together with its entry in the audit log."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from postroom.core.audited_actions import AuditedAction
from postroom.core.errors import IllegalMove, NotFound
from postroom.store.engine.database import Script, transaction
from postroom.store.jobs import job_filters, jobs
from postroom.store.people.audit import Signature, auditing

JobVerb = Literal["retry", "cancel", "dismiss"]
_MANY: Mapping[JobVerb, AuditedAction] = {
    "retry": "job.retry_many",
    "cancel": "job.cancel_many",
    "dismiss": "job.dismiss_many",
}


@dataclass(frozen=True, slots=True)
class BulkProgress:
    """How far a change of many jobs has come: how many there are, were looked at, and were changed."""

    count: int
    seen: int = 0
    done: int = 0


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


@dataclass(frozen=True, slots=True)
class BulkRun:
    """A change of many jobs, as its entries in the audit log name it."""

    id: UUID
    verb: JobVerb
    asked: tuple[tuple[str, str], ...] = ()


@transaction
def change_many(
    run: BulkRun, ids: Sequence[UUID], before: BulkProgress, signed: Signature, now: datetime
) -> Script[BulkProgress]:
    """Retry, cancel or dismiss some of the jobs of a bulk act, and record how far it has come with them.

    Jobs that have moved on meanwhile stay as they are.
    """
    done = 0
    if run.verb == "dismiss":
        done = yield from job_filters.dismiss_jobs.script(ids, now)
    else:
        change = jobs.retry_job if run.verb == "retry" else jobs.cancel_job
        for id in ids:
            try:
                yield from change.script(id, now)
                done += 1
            except (IllegalMove, NotFound):
                continue
    progress = BulkProgress(before.count, before.seen + len(ids), before.done + done)
    after = {"asked": dict(run.asked), **asdict(progress)}
    yield from auditing(signed.under(_MANY[run.verb], "jobs", str(run.id), after=after), now)
    return progress
