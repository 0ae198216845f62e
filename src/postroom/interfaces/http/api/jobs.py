"""Jobs: how many stand where, what fails and why, how fast they end, and who works on them."""

from datetime import datetime
from uuid import UUID

from pydantic import Field

from postroom.core.access import OPERATE
from postroom.core.lifecycle import JobState
from postroom.interfaces.http.api.call import Call
from postroom.interfaces.http.api.connectors import WindowForm, WindowQuery
from postroom.interfaces.http.api.cursors import opened, sealed
from postroom.interfaces.http.api.forms import (
    Answer,
    Arguments,
    Done,
    Filter,
    Json,
    Nothing,
    Page,
    Paged,
    Seconds,
    Text,
)
from postroom.interfaces.http.api.operation import Noun
from postroom.operations.jobs import job_board
from postroom.operations.jobs.job_board import JobFilters, Stage
from postroom.operations.jobs.job_bulk import apply_to_cause, apply_to_filtered
from postroom.operations.jobs.job_causes import job_causes
from postroom.operations.jobs.job_story import load_story
from postroom.operations.jobs.jobs import Verb, cancel_job, dismiss_job, retry_job
from postroom.operations.overview.windows import window_of

JOBS = Noun("Jobs")
LIST = "jobs"


class JobPath(Arguments):
    id: UUID = Field(description="The id of the job.")


class CausePath(Arguments):
    key: Filter = Field(description="The key of the cause.")


class JobsQuery(Paged):
    stage: Stage | None = Field(None, description="Only jobs in this stage.")
    type: Filter | None = Field(None, description="Only jobs of this type.")
    account: Filter | None = Field(None, description="Only jobs of this account, by address or id.")
    error: Filter | None = Field(None, description="Only jobs with this text in their last error.")


class BulkBody(Arguments):
    verb: Verb
    stage: Stage = Field(description="The stage of the jobs.")
    type: Filter | None = None
    account: Filter | None = None
    error: Filter | None = None
    begin: Text = Field(
        max_length=200, description="`begin` of the selection that was shown: jobs that came later are left alone."
    )


class VerbBody(Arguments):
    verb: Verb


class UntrustedJob(Answer):
    last_error: str | None


class JobLineForm(Answer):
    id: UUID
    type: str
    state: JobState
    attempts: int
    max_attempts: int
    not_before: datetime | None
    created_at: datetime
    finished_at: datetime | None
    cancel_requested: bool
    parked_by: str | None
    untrusted: UntrustedJob


class JobPage(Page):
    """The newest first."""

    jobs: list[JobLineForm]


class SelectionAnswer(Answer):
    """The jobs that a bulk act would touch, by type, and the key to begin at."""

    count: int
    by_type: dict[str, int]
    is_more: bool
    begin: str


class SelectionQuery(Arguments):
    stage: Stage = Field(description="The stage of the jobs.")
    type: Filter | None = Field(None, description="Only jobs of this type.")
    account: Filter | None = Field(None, description="Only jobs of this account, by address or id.")
    error: Filter | None = Field(None, description="Only jobs with this text in their last error.")


class StageCountForm(Answer):
    stage: Stage
    count: int
    is_more: bool


class StagesAnswer(Answer):
    """Counted up to ten thousand. Completed jobs are counted by hour instead."""

    stages: list[StageCountForm]


class UntrustedCause(Answer):
    cause: str


class RemedyForm(Answer):
    text: str
    address: str


class CauseForm(Answer):
    """Jobs of one type that stand in the same stage for the same reason."""

    key: str
    stage: Stage
    type: str
    count: int
    first_at: datetime
    last_at: datetime
    next_try_at: datetime | None
    remedy: RemedyForm | None
    untrusted: UntrustedCause


class CausesAnswer(Answer):
    """`is_partial` says that there were more jobs in trouble than the `sample` of each stage that was looked at."""

    groups: list[CauseForm]
    is_partial: bool
    sample: int


class TypeFiguresForm(Answer):
    """How jobs of one type ended in the window. `rate` is how many ended in each span."""

    type: str
    ended: int
    failed: int
    median_s: Seconds = Field(validation_alias="median")
    p95_s: Seconds = Field(validation_alias="p95")
    rate: list[int]


class FiguresAnswer(Answer):
    window: WindowForm
    counted_until: datetime | None
    by_state: dict[str, list[int]]
    p95_ms: list[float]
    types: list[TypeFiguresForm]


class WorkerForm(Answer):
    holder: str
    heartbeat_at: datetime
    lease_until: datetime
    running: int


class WorkersAnswer(Answer):
    workers: list[WorkerForm]
    alive: int
    leader: str | None
    leads_until: datetime | None
    read_at: datetime


class UntrustedMoment(Answer):
    detail: str


class MomentForm(Answer):
    at: datetime
    what: str
    took_s: Seconds | None = Field(validation_alias="took")
    untrusted: UntrustedMoment


class UntrustedStory(Answer):
    payload: Json


class JobAnswer(Answer):
    """A job with everything that happened to it, the oldest first."""

    job: JobLineForm
    stage: Stage
    account: str | None
    message_id: str | None
    moments: list[MomentForm]
    left_out: int
    untrusted: UntrustedStory


class BulkAnswer(Answer):
    """How many of the chosen jobs it was done to; the others have moved on meanwhile."""

    verb: Verb
    done: int
    chosen: int


@JOBS.get("/jobs")
async def read_jobs(call: Call, query: JobsQuery) -> JobPage:
    """The jobs that match, the newest first."""
    page = await job_board.list_page(call.database, _filters(query), opened(LIST, query.next), query.limit)
    return JobPage(jobs=[JobLineForm.of(each) for each in page.jobs], next=sealed(LIST, page.before))


@JOBS.get("/jobs/stages")
async def read_stages(call: Call) -> StagesAnswer:
    """How many jobs are in each stage."""
    return StagesAnswer(stages=[StageCountForm.of(each) for each in await job_board.count_stages(call.database)])


@JOBS.get("/jobs/causes")
async def read_causes(call: Call) -> CausesAnswer:
    """The jobs in trouble, grouped by type and cause."""
    return CausesAnswer.of(await job_causes(call.database))


@JOBS.post("/jobs/causes/{key}", OPERATE)
async def act_on_cause(call: Call, path: CausePath, body: VerbBody) -> BulkAnswer:
    """Retry, cancel or dismiss the jobs of one cause."""
    return BulkAnswer.of(await apply_to_cause(call.database, body.verb, path.key, call.signed(), call.clock))


@JOBS.get("/jobs/figures")
async def read_figures(call: Call, query: WindowQuery) -> FiguresAnswer:
    """How many jobs ended in the window, how, and after how long."""
    return FiguresAnswer.of(await job_board.job_figures_of(call.database, window_of(query.window, call.clock())))


@JOBS.get("/jobs/workers")
async def read_workers(call: Call) -> WorkersAnswer:
    """The worker processes, and the one that leads."""
    return WorkersAnswer.of(await job_board.workforce(call.database, call.clock))


@JOBS.get("/jobs/selection")
async def select_jobs(call: Call, query: SelectionQuery) -> SelectionAnswer:
    """The jobs that a bulk act would touch: the newest that match, up to 500."""
    return SelectionAnswer.of(await job_board.select_page_jobs(call.database, _filters(query)))


@JOBS.post("/jobs/bulk", OPERATE)
async def act_on_jobs(call: Call, body: BulkBody) -> BulkAnswer:
    """Retry, cancel or dismiss the jobs of a selection that was shown before."""
    return BulkAnswer.of(
        await apply_to_filtered(call.database, body.verb, _filters(body), body.begin, call.signed(), call.clock)
    )


@JOBS.get("/jobs/{id}")
async def read_job(call: Call, path: JobPath) -> JobAnswer:
    """One job, from its acceptance to now."""
    return JobAnswer.of(await load_story(call.database, path.id))


@JOBS.post("/jobs/{id}/retry", OPERATE)
async def retry_one_job(call: Call, path: JobPath, body: Nothing) -> Done:
    """Queue a failed or canceled job again, with all its attempts; make a waiting one due at once."""
    await retry_job(call.database, path.id, call.signed(), call.clock)
    return Done(done="The job is queued again.")


@JOBS.post("/jobs/{id}/cancel", OPERATE)
async def cancel_one_job(call: Call, path: JobPath, body: Nothing) -> Done:
    """Cancel a job that waits; one that runs stops at its next step."""
    outcome = await cancel_job(call.database, path.id, call.signed(), call.clock)
    return Done(done="The job is canceled." if outcome == "canceled" else "The job is canceled at its next step.")


@JOBS.post("/jobs/{id}/dismiss", OPERATE)
async def dismiss_one_job(call: Call, path: JobPath, body: Nothing) -> Done:
    """Count a failed job as canceled, so that nobody is asked about it again."""
    await dismiss_job(call.database, path.id, call.signed(), call.clock)
    return Done(done="The job is dismissed: it counts as canceled.")


def _filters(given: JobsQuery | SelectionQuery | BulkBody) -> JobFilters:
    return JobFilters(given.stage, given.type, given.account, given.error)
