"""Jobs: list, show, retry, cancel and dismiss them, one or all that match."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from postroom.core.access import OPERATE, READ
from postroom.core.errors import IllegalMove, NotFound
from postroom.core.jobs.job import JobView
from postroom.core.jobs.types import CATALOGUE
from postroom.core.lifecycle import JobState
from postroom.core.views import Done
from postroom.operations.accounts.accounts import find_account
from postroom.operations.caller import Caller
from postroom.operations.nouns import JOBS
from postroom.operations.operation import Argument, Limit, command, dialogue, form, post
from postroom.operations.people.audit import next_entry
from postroom.operations.short_ids import found_by_id
from postroom.store.engine.codecs import from_json
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.jobs import job_filters, job_requests, jobs
from postroom.store.jobs.job_filters import JobFilter, JobMatch
from postroom.store.jobs.job_requests import BulkProgress, BulkRun, JobVerb, change_many
from postroom.store.people.audit import list_audit_of

MOST_AT_ONCE = 10_000
AT_ONCE = 200
"""Jobs in one transaction of a bulk act: workers wait no longer for it than for these."""

COLUMNS = ("id", "type", "state", "priority", "attempts", "not_before", "updated_at", "last_error")
STEPS = {"steps": ("name", "attempt", "started_at", "finished_at", "result_json")}

Verb = JobVerb
JOB = found_by_id("job", "postroom jobs list", "jobs")
JobId = Annotated[UUID, Argument("The id of the job."), JOB]
# The states in which jobs are looked for, if none is named.
STATES: Mapping[Verb, tuple[JobState, ...]] = {
    "retry": ("failed",),
    "cancel": ("queued", "running"),
    "dismiss": ("failed",),
}


@dataclass(frozen=True, slots=True)
class JobSelection:
    """Jobs by type, state, a part of their last error and account; all that is given must match."""

    type: Annotated[str | None, Argument("All jobs of this type, such as classify.")] = None
    state: Annotated[JobState | None, Argument("All jobs in this state, such as failed.")] = None
    error: Annotated[str | None, Argument("All whose last error contains this text.", typed_as="--error TEXT")] = None
    account: Annotated[
        str | None, Argument("All that work on the mailbox of this account.", typed_as="--account ADDRESS")
    ] = None


@dataclass(frozen=True, slots=True)
class SelectedJobs:
    """The jobs of a selection, and how many there are of each type."""

    ids: Sequence[UUID]
    by_type: Mapping[str, int]


def _for_programs(job: JobView) -> dict[str, Any]:
    """The job with its stored JSON text as JSON."""
    row = asdict(job)
    row["payload"] = from_json(row.pop("payload_json"))
    for step in row["steps"]:
        text = step.pop("result_json")
        step["result"] = None if text is None else from_json(text)
    return row


def _for_people(job: JobView) -> dict[str, Any]:
    return {name: value for name, value in asdict(job).items() if name != "steps"}


@JOBS.operation(READ, command("jobs list", *COLUMNS, row=_for_programs, cells=_for_people))
async def list_jobs(
    database: Database,
    /,
    state: Annotated[
        JobState | None, Argument("Only jobs that are queued, running, completed, failed or canceled.")
    ] = None,
    type: Annotated[str | None, Argument("Only jobs of this type, such as classify.")] = None,
    limit: Limit = 50,
) -> list[JobView]:
    """List jobs, newest first."""
    return await database.run(jobs.list_jobs(state, type, limit))


@JOBS.operation(READ, command("jobs show {id}", row=_for_programs, cells=_for_people, tables=STEPS))
async def load_job(
    database: Database,
    /,
    id: JobId,
) -> JobView:
    """Show one job with its steps."""
    job = await database.run(jobs.show_job(id))
    if job is None:
        raise NotFound(f"there is no job {id}; `postroom jobs list` lists them")
    return job


async def select_jobs(database: Database, verb: Verb, selection: JobSelection) -> SelectedJobs:
    """Find the jobs of a selection, oldest first, up to 10,000. Raise BadInput for a type that does not exist."""
    if selection.type is not None:
        CATALOGUE[selection.type]
    account_id = None if selection.account is None else (await find_account(database, selection.account)).id
    found: list[JobMatch] = []
    for state in STATES[verb] if selection.state is None else (selection.state,):
        wanted = JobFilter(state, selection.type, selection.error, account_id)
        found += await database.run(job_filters.matching_jobs(wanted, MOST_AT_ONCE - len(found)))
    return SelectedJobs([each.id for each in found], Counter(each.type for each in found))


@JOBS.operation(OPERATE, post("/jobs/{id}/retry"), form("/jobs/{id}/retry"), dialogue("jobs retry"))
async def retry_job(by: Caller, /, id: JobId) -> Done:
    """Queue a failed or canceled job again, with all its attempts; make a waiting one due at once."""
    await by.run(job_requests.retry_for(id, by.signature, by.clock()))
    return Done("The job is queued again.")


@JOBS.operation(OPERATE, post("/jobs/{id}/cancel"), form("/jobs/{id}/cancel"), dialogue("jobs cancel"))
async def cancel_job(by: Caller, /, id: JobId) -> Done:
    """Cancel a job that waits; one that runs stops at its next step."""
    outcome = await by.run(job_requests.cancel_for(id, by.signature, by.clock()))
    return Done("The job is canceled." if outcome == "canceled" else "The job is canceled at its next step.")


@JOBS.operation(OPERATE, post("/jobs/{id}/dismiss"), form("/jobs/{id}/dismiss"), dialogue("jobs dismiss"))
async def dismiss_job(by: Caller, /, id: JobId) -> Done:
    """Count a failed job as canceled: it no longer counts as trouble, and can still be retried."""
    if not await by.run(job_requests.dismiss_for(id, by.signature, by.clock())):
        job = await load_job(by.database, id)
        raise IllegalMove(f"job {id} is {job.state}, and only failed jobs are dismissed; see `postroom jobs cancel`")
    return Done("The job is dismissed: it counts as canceled.")


async def apply_to_jobs(
    by: Caller,
    verb: Verb,
    ids: Sequence[UUID],
    asked: Mapping[str, str] | None = None,
    *,
    run_id: UUID | None = None,
    report: Callable[[int, int], None] = lambda _seen, _count: None,
) -> int:
    """Retry, cancel or dismiss jobs, some at a time; return how many. Those that have moved on meanwhile stay.

    The audit log has an entry for each part that is done, in the same transaction: whatever ends the work halfway, the
    last entry of the run says how far it came. `report` is called with the number of jobs looked at.
    """
    run = BulkRun(run_id or new_id(), verb, tuple((asked or {}).items()))
    progress = BulkProgress(len(ids))
    for at in range(0, max(len(ids), 1), AT_ONCE):
        part = ids[at : at + AT_ONCE]
        progress = await by.run(change_many(run, part, progress, next_entry(by.signature), by.clock()))
        report(progress.seen, progress.count)
    return progress.done


@dataclass(frozen=True, slots=True)
class BulkRecord:
    """The last that is known of a bulk act, whoever carried it out."""

    verb: str
    by: str
    at: datetime
    asked: Mapping[str, str]
    progress: BulkProgress


async def bulk_record(database: Database, run_id: str) -> BulkRecord | None:
    """Read how far a bulk act has come; None if no part of it is done."""
    for entry in await database.run(list_audit_of("jobs", run_id, 1)):
        after = entry.after or {}
        progress = BulkProgress(*(int(after.get(name, 0)) for name in ("count", "seen", "done")))
        verb = entry.action.removeprefix("job.").removesuffix("_many")
        return BulkRecord(verb, entry.actor, entry.at, after.get("asked") or {}, progress)
    return None
