"""Jobs: how many stand where, what fails and why, how fast they end, and who works on them."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from pydantic import Field

from postroom.core.access import OPERATE
from postroom.core.views import Page
from postroom.interfaces.http.api.call import Call
from postroom.interfaces.http.api.connectors import WindowQuery
from postroom.interfaces.http.api.forms import Arguments, Done, Filter, Nothing, Paged, Text
from postroom.interfaces.http.api.handwritten import Noun
from postroom.interfaces.http.cursors import opened, sealed
from postroom.operations.jobs import job_board
from postroom.operations.jobs.job_board import (
    JobFigures,
    JobFilters,
    JobLine,
    SelectedJobs,
    Stage,
    StageCount,
    Workforce,
)
from postroom.operations.jobs.job_bulk import BulkOutcome, apply_to_cause, apply_to_filtered
from postroom.operations.jobs.job_causes import JobCauses, job_causes
from postroom.operations.jobs.job_story import JobStory, load_story
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


class SelectionQuery(Arguments):
    stage: Stage = Field(description="The stage of the jobs.")
    type: Filter | None = Field(None, description="Only jobs of this type.")
    account: Filter | None = Field(None, description="Only jobs of this account, by address or id.")
    error: Filter | None = Field(None, description="Only jobs with this text in their last error.")


@dataclass(frozen=True, slots=True)
class StagesAnswer:
    """Counted up to ten thousand. Completed jobs are counted by hour instead."""

    stages: Sequence[StageCount]


@JOBS.get("/jobs")
async def read_jobs(call: Call, query: JobsQuery) -> Page[JobLine]:
    """The jobs that match, the newest first."""
    page = await job_board.list_page(call.database, _filters(query), opened(LIST, query.next), query.limit)
    return Page(page.jobs, sealed(LIST, page.before))


@JOBS.get("/jobs/stages")
async def read_stages(call: Call) -> StagesAnswer:
    """How many jobs are in each stage."""
    return StagesAnswer(await job_board.count_stages(call.database))


@JOBS.get("/jobs/causes")
async def read_causes(call: Call) -> JobCauses:
    """The jobs in trouble, grouped by type and cause."""
    return await job_causes(call.database)


@JOBS.post("/jobs/causes/{key}", OPERATE)
async def act_on_cause(call: Call, path: CausePath, body: VerbBody) -> BulkOutcome:
    """Retry, cancel or dismiss the jobs of one cause."""
    return await apply_to_cause(call.by(), body.verb, path.key)


@JOBS.get("/jobs/figures")
async def read_figures(call: Call, query: WindowQuery) -> JobFigures:
    """How many jobs ended in the window, how, and after how long."""
    return await job_board.job_figures_of(call.database, window_of(query.window, call.clock()))


@JOBS.get("/jobs/workers")
async def read_workers(call: Call) -> Workforce:
    """The worker processes, and the one that leads."""
    return await job_board.workforce(call.database, call.clock)


@JOBS.get("/jobs/selection")
async def select_jobs(call: Call, query: SelectionQuery) -> SelectedJobs:
    """The jobs that a bulk act would touch: the newest that match, up to 500."""
    return await job_board.select_page_jobs(call.database, _filters(query))


@JOBS.post("/jobs/bulk", OPERATE)
async def act_on_jobs(call: Call, body: BulkBody) -> BulkOutcome:
    """Retry, cancel or dismiss the jobs of a selection that was shown before."""
    return await apply_to_filtered(call.by(), body.verb, _filters(body), body.begin)


@JOBS.get("/jobs/{id}")
async def read_job(call: Call, path: JobPath) -> JobStory:
    """One job, from its acceptance to now."""
    return await load_story(call.database, path.id)


@JOBS.post("/jobs/{id}/retry", OPERATE)
async def retry_one_job(call: Call, path: JobPath, body: Nothing) -> Done:
    """Queue a failed or canceled job again, with all its attempts; make a waiting one due at once."""
    await retry_job(call.by(), path.id)
    return Done(done="The job is queued again.")


@JOBS.post("/jobs/{id}/cancel", OPERATE)
async def cancel_one_job(call: Call, path: JobPath, body: Nothing) -> Done:
    """Cancel a job that waits; one that runs stops at its next step."""
    outcome = await cancel_job(call.by(), path.id)
    return Done(done="The job is canceled." if outcome == "canceled" else "The job is canceled at its next step.")


@JOBS.post("/jobs/{id}/dismiss", OPERATE)
async def dismiss_one_job(call: Call, path: JobPath, body: Nothing) -> Done:
    """Count a failed job as canceled, so that nobody is asked about it again."""
    await dismiss_job(call.by(), path.id)
    return Done(done="The job is dismissed: it counts as canceled.")


def _filters(given: JobsQuery | SelectionQuery | BulkBody) -> JobFilters:
    return JobFilters(given.stage, given.type, given.account, given.error)
