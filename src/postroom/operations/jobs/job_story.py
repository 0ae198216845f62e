"""One job from its acceptance to now: what it is for, each step and attempt, and how it stands."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any

from postroom.core.access import READ
from postroom.core.jobs.job import JobView, StepView
from postroom.core.views import Internal, Untrusted
from postroom.operations.jobs.jobs import JobId, load_job
from postroom.operations.nouns import JOBS
from postroom.operations.operation import get
from postroom.store.accounts import accounts
from postroom.store.engine.codecs import from_json
from postroom.store.engine.database import Database
from postroom.store.jobs.job_lists import Stage
from postroom.words.jobs import EVENTS
from postroom.words.states import Mood

MOST_MOMENTS = 300


@dataclass(frozen=True, slots=True)
class JobMoment:
    """Something that happened to a job."""

    at: datetime
    what: str
    mood: Internal[Mood]
    detail: Untrusted[str] = ""
    took: timedelta | None = None


@dataclass(frozen=True, slots=True)
class JobStory:
    """A job with everything that happened to it."""

    job: JobView
    stage: Stage
    payload: Untrusted[Mapping[str, Any]]
    account: Annotated[str | None, "The address of the mailbox that it works on."]
    message_id: str | None
    moments: Annotated[Sequence[JobMoment], "Oldest first."]
    left_out: Annotated[int, "How many steps are not listed."]


@JOBS.operation(READ, get("/jobs/{id}"))
async def load_story(database: Database, /, id: JobId) -> JobStory:
    """One job, from its acceptance to now."""
    job = await load_job(database, id)
    payload: Mapping[str, Any] = from_json(job.payload_json)
    known = {str(each.id): each.email for each in await database.run(accounts.list_accounts())}
    moments = [*_moments(job)]
    message = payload.get("message_id")
    return JobStory(
        job,
        stage_of(job),
        payload,
        known.get(str(payload.get("account_id"))),
        message if isinstance(message, str) else None,
        [moments[0], *moments[1:][-MOST_MOMENTS:]],
        max(0, len(moments) - 1 - MOST_MOMENTS),
    )


def stage_of(job: JobView) -> Stage:
    """Return the stage of a job. One whose time has come stays scheduled until the scheduler has woken it."""
    match job.state:
        case "queued" if job.parked_by is not None:
            return "parked"
        case "queued" if job.not_before is not None and job.not_before > job.updated_at:
            return "retrying" if job.attempts else "scheduled"
        case "queued":
            return "ready"
        case other:
            return other


def _moments(job: JobView) -> Iterator[JobMoment]:
    yield JobMoment(job.created_at, "Enqueued", "", f"priority {job.priority}, up to {job.max_attempts} attempts")
    for step in job.steps:
        yield _step(step)
    if job.finished_at is not None:
        ends: Mapping[str, tuple[str, Mood]] = {"completed": ("Completed", "good"), "failed": ("Failed", "bad")}
        what, mood = ends.get(job.state, ("Canceled", ""))
        yield JobMoment(job.finished_at, what, mood, job.last_error or "" if job.state == "failed" else "")
    elif job.parked_by is not None:
        yield JobMoment(job.updated_at, "Parked", "ask", job.last_error or "")
    elif job.last_error is not None:
        yield JobMoment(job.updated_at, "The last attempt failed", "ask", job.last_error)


def _step(step: StepView) -> JobMoment:
    if step.kind == "event":
        what, mood = EVENTS.get(step.name, (step.name, ""))
        return JobMoment(step.started_at, what, mood)
    if step.finished_at is None:
        return JobMoment(step.started_at, step.name, "busy", f"attempt {step.attempt}, began and has not ended")
    took = step.finished_at - step.started_at
    return JobMoment(step.started_at, step.name, "good", f"attempt {step.attempt}", took)
