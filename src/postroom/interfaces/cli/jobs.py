"""`postroom jobs`: list, retry, cancel or dismiss jobs."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, get_args
from uuid import UUID

import typer

from postroom.core.errors import BadInput
from postroom.core.lifecycle import JOB, JobState
from postroom.interfaces.cli.approvals import Yes
from postroom.interfaces.cli.options import Limit, choice
from postroom.interfaces.cli.output import show_json, show_list, show_one
from postroom.interfaces.cli.session import Session, command_group
from postroom.words.jobs import PAST

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from postroom.core.jobs.job import JobView
    from postroom.core.views import Done
    from postroom.operations.caller import Caller
    from postroom.operations.jobs.jobs import JobSelection, Verb

app = command_group("List, retry, cancel or dismiss jobs.")

COLUMNS = ("id", "type", "state", "priority", "attempts", "not_before", "updated_at", "last_error")
STEP_COLUMNS = ("name", "attempt", "started_at", "finished_at", "result_json")

STATES: tuple[JobState, ...] = get_args(JobState)
OneJob = Annotated[
    UUID | None, typer.Argument(metavar="ID", help="The id of one job, as `postroom jobs list` shows it.")
]
Type = Annotated[str | None, typer.Option("--type", help="All jobs of this type, such as classify.")]
State = Annotated[str | None, typer.Option("--state", help="All jobs in this state, such as failed.")]
Error = Annotated[str | None, typer.Option("--error", metavar="TEXT", help="All whose last error contains this text.")]
Account = Annotated[
    str | None, typer.Option("--account", metavar="ADDRESS", help="All that work on the mailbox of this account.")
]
JobId = Annotated[UUID, typer.Argument(metavar="ID", help="The id of the job, as `postroom jobs list` shows it.")]


@app.command("list")
def list_(
    session: Session,
    state: Annotated[
        str | None, typer.Option("--state", help="Only jobs that are queued, running, completed, failed or canceled.")
    ] = None,
    type_: Annotated[str | None, typer.Option("--type", help="Only jobs of this type, such as classify.")] = None,
    limit: Limit = 50,
) -> None:
    """List jobs, newest first."""
    from postroom.operations.jobs.jobs import list_jobs

    wanted = None if state is None else choice("--state", state, sorted(JOB.states))
    found = session.call(list_jobs, wanted, type_, limit)
    session.show_list([_document(job) for job in found] if session.as_json else found, COLUMNS)


@app.command()
def show(session: Session, job_id: JobId) -> None:
    """Show one job with its steps."""
    from postroom.operations.jobs.jobs import load_job

    job = session.call(load_job, job_id)
    if session.as_json:
        show_json(_document(job))
        return
    show_one({name: value for name, value in asdict(job).items() if name != "steps"})
    if job.steps:
        typer.echo("")
        show_list(job.steps, STEP_COLUMNS, as_json=False)


@app.command()
def retry(
    session: Session,
    job_id: OneJob = None,
    type_: Type = None,
    state: State = None,
    error: Error = None,
    account: Account = None,
    yes: Yes = False,
) -> None:
    """Queue failed or canceled jobs again with all their attempts, or make a waiting job due at once.

    Give one job, or filters: all failed jobs that match are counted, and retried when you confirm.
    """
    from postroom.operations.jobs.jobs import retry_job

    if job_id is not None:
        _only(job_id, type_, state, error, account)
        _to_one(session, retry_job, job_id)
    else:
        _to_many(session, "retry", _selection(type_, state, error, account), yes)


@app.command()
def cancel(
    session: Session,
    job_id: OneJob = None,
    type_: Type = None,
    state: State = None,
    error: Error = None,
    account: Account = None,
    yes: Yes = False,
) -> None:
    """Cancel jobs: waiting ones at once, running ones at their next step.

    Give one job, or filters: all jobs that match, and wait or run, are counted, and canceled when you confirm.
    """
    from postroom.operations.jobs.jobs import cancel_job

    if job_id is not None:
        _only(job_id, type_, state, error, account)
        _to_one(session, cancel_job, job_id)
    else:
        _to_many(session, "cancel", _selection(type_, state, error, account), yes)


@app.command()
def dismiss(
    session: Session,
    job_id: OneJob = None,
    type_: Type = None,
    error: Error = None,
    account: Account = None,
    yes: Yes = False,
) -> None:
    """Dismiss failed jobs: they count as canceled, and can still be retried.

    Give one job, or filters: all failed jobs that match are counted, and dismissed when you confirm.
    """
    from postroom.operations.jobs.jobs import dismiss_job

    if job_id is not None:
        _only(job_id, type_, None, error, account)
        _to_one(session, dismiss_job, job_id)
    else:
        _to_many(session, "dismiss", _selection(type_, None, error, account), yes)


def _only(job_id: UUID, *filters: str | None) -> None:
    if any(each is not None for each in filters):
        raise BadInput("ID", "cannot be combined with --type, --state, --error or --account", "give one or the other")


def _selection(type_: str | None, state: str | None, error: str | None, account: str | None) -> "JobSelection":
    from postroom.operations.jobs.jobs import JobSelection

    selection = JobSelection(type_, None if state is None else choice("--state", state, STATES), error, account)
    if selection.is_empty:
        raise BadInput("ID", "is missing", "name a job, or give --type, --state, --error or --account")
    return selection


def _to_one(session: Session, act: "Callable[[Caller, UUID], Coroutine[Any, Any, Done]]", job_id: UUID) -> None:
    answer = session.act(act, job_id)
    session.show_line(answer, answer.done)


def _to_many(session: Session, verb: "Verb", selection: "JobSelection", yes: bool) -> None:
    """Do something with all jobs of a selection, once the user has seen how many they are."""
    from postroom.operations.jobs.jobs import apply_to_jobs, select_jobs

    found = session.call(select_jobs, verb, selection)
    kinds = ", ".join(f"{count:,} {type_}" for type_, count in sorted(found.by_type.items()))
    if found.ids and not yes:
        typer.confirm(f"{len(found.ids):,} jobs match ({kinds}). {verb.capitalize()} them?", abort=True)
    asked = {name: str(value) for name, value in asdict(selection).items() if value is not None}
    done = session.act(apply_to_jobs, verb, found.ids, asked=asked) if found.ids else 0
    line = f"{PAST[verb]}  {done:,} of {len(found.ids):,} jobs" if found.ids else "No job matches."
    session.show_line({"matched": len(found.ids), "done": done, "by_type": dict(found.by_type)}, line)


def _document(job: "JobView") -> dict[str, Any]:
    """Return the job for programs, with stored JSON text as JSON."""
    row = asdict(job)
    row["payload"] = json.loads(row.pop("payload_json"))
    for step in row["steps"]:
        text = step.pop("result_json")
        step["result"] = None if text is None else json.loads(text)
    return row
