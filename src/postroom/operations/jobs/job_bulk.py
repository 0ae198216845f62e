"""Acts on many jobs at once: those that a filter finds, or those of one cause."""

from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple
from uuid import UUID

from postroom.core.access import OPERATE
from postroom.core.errors import BadInput, NotFound
from postroom.operations.caller import Caller
from postroom.operations.installation.long_tasks import Report
from postroom.operations.jobs.job_board import (
    STAGES,
    JobAccount,
    JobError,
    JobFilters,
    JobStage,
    JobType,
    select_page_jobs,
)
from postroom.operations.jobs.job_causes import job_causes
from postroom.operations.jobs.jobs import Verb, apply_to_jobs
from postroom.operations.nouns import JOBS
from postroom.operations.operation import Argument, flow, post
from postroom.store.engine.database import Database
from postroom.store.jobs.job_lists import Stage

VERBS: Mapping[str, tuple[Verb, ...]] = {
    "ready": ("cancel",),
    "running": ("cancel",),
    "scheduled": ("retry", "cancel"),
    "retrying": ("retry", "cancel"),
    "parked": ("cancel",),
    "failed": ("retry", "dismiss"),
    "canceled": ("retry",),
}
"""The acts that are possible on the jobs of each stage."""


class BulkOutcome(NamedTuple):
    """How many of the chosen jobs it was done to; the others have moved on meanwhile."""

    verb: Verb
    done: int
    chosen: int


def read_stage(given: str | None) -> Stage | None:
    """Read the name of a stage. Raise BadInput if there is none of that name."""
    for stage in STAGES:
        if stage == given:
            return stage
    if given:
        raise BadInput("stage", f"{given[:40]!r} is none of them", f"choose one of: {', '.join(STAGES)}")
    return None


class ChosenJobs(NamedTuple):
    """The jobs to act on, and how they were asked for."""

    verb: Verb
    ids: Sequence[UUID]
    asked: Mapping[str, str]


async def choose_by_filters(database: Database, verb: str, filters: JobFilters, begin: str) -> ChosenJobs:
    """Choose the jobs that the filters find from a key on, which the list has shown. Raise BadInput."""
    known = _verb(verb, filters.stage)
    found = await select_page_jobs(database, filters, begin)
    named = {"stage": filters.stage, "type": filters.type, "account": filters.account, "error": filters.error}
    return ChosenJobs(known, [each.id for each in found.jobs], {name: value for name, value in named.items() if value})


async def choose_by_cause(database: Database, verb: str, key: str) -> ChosenJobs:
    """Choose the jobs of one cause. They are found again, since some may have moved on. Raise NotFound, BadInput."""
    found = next((each for each in (await job_causes(database)).groups if each.key == key), None)
    if found is None:
        raise NotFound("no job has this cause any more")
    return ChosenJobs(_verb(verb, found.stage), found.ids, {"stage": found.stage, "type": found.type, "cause": key})


async def apply_to_chosen(
    by: Caller, chosen: ChosenJobs, *, run_id: UUID | None = None, report: Report = lambda _seen, _count: None
) -> BulkOutcome:
    """Act on the jobs, some at a time; `run_id` names the work in the audit log."""
    verb, ids, asked = chosen
    done = await apply_to_jobs(by, verb, ids, asked, run_id=run_id, report=report)
    return BulkOutcome(verb, done, len(ids))


@JOBS.operation(OPERATE, post("/jobs/bulk"), flow("/jobs/bulk/{verb}"))
async def act_on_jobs(
    by: Caller,
    /,
    verb: Verb,
    stage: JobStage,
    begin: Annotated[
        str, Argument("`begin` of the selection that was shown: jobs that came later are left alone.", 0, 200)
    ],
    type: JobType = None,
    account: JobAccount = None,
    error: JobError = None,
) -> BulkOutcome:
    """Retry, cancel or dismiss the jobs of a selection that was shown before."""
    filters = JobFilters(stage, type, account, error)
    return await apply_to_chosen(by, await choose_by_filters(by.database, verb, filters, begin))


@JOBS.operation(OPERATE, post("/jobs/causes/{key}"), flow("/jobs/cause/{verb}"))
async def act_on_cause(
    by: Caller, /, key: Annotated[str, Argument("The key of the cause.")], verb: Verb
) -> BulkOutcome:
    """Retry, cancel or dismiss the jobs of one cause."""
    return await apply_to_chosen(by, await choose_by_cause(by.database, verb, key))


def _verb(given: str, stage: Stage | None) -> Verb:
    for verb in VERBS.get(stage or "", ()):
        if verb == given:
            return verb
    problem = f"{given[:20]!r} cannot be done with jobs that are {stage or 'in any stage'}"
    raise BadInput("verb", problem, "choose a stage first, and one of the acts on its jobs")
