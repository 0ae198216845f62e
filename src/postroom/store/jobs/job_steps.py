"""Named steps of a job with their results, so that a retry resumes after the last one that finished.

A step is recorded before it begins and again when it has ended: a step that began and never ended was interrupted by a
crash. Both writes are fenced by the claim.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from postroom.core.errors import Canceled, LeaseLost
from postroom.core.jobs.job import Job, StepView
from postroom.store.engine.codecs import json_text, rows_text
from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.engine.ids import new_id
from postroom.store.engine.reading import read_rows


@transaction
def begin_step(job: Job, step_id: UUID, name: str, now: datetime) -> Script[None]:
    """Record that a step begins; here a running job learns that it should be canceled."""
    yield from fence(job, may_be_canceled=True)
    yield sql("insert_step", step_id, job.id, job.attempts, "step", name, now)


@transaction
def finish_step(job: Job, step_id: UUID, result: object, now: datetime) -> Script[None]:
    """Record the result of a step. A cancel request does not undo what has been done."""
    yield from fence(job, may_be_canceled=False)
    yield sql("finish_step", step_id, json_text(result), now)


def fence(job: Job, may_be_canceled: bool) -> Script[None]:
    """Part of a transaction: go on only while the job is ours."""
    rows = yield sql("select_claim", *job.claim)
    if not rows:
        raise LeaseLost(f"job {job.id} was taken over by another worker; attempt {job.attempts} changes nothing")
    if may_be_canceled and rows[0][0]:
        raise Canceled(f"job {job.id} was canceled on request")


@query
def steps_of(job_id: UUID) -> Script[list[StepView]]:
    return read_rows(StepView, (yield sql("select_steps", job_id)))


def record_events(name: str, events: Sequence[tuple[UUID, int, Mapping[str, object]]], now: datetime) -> Script[None]:
    """Part of a transaction: record an event of these jobs among the steps of each."""
    if events:
        rows = [(new_id(), job_id, attempt, json_text(what)) for job_id, attempt, what in events]
        yield sql("insert_events", name, rows_text(rows), now)
