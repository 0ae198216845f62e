"""`postroom jobs`: look at jobs, retry or cancel them."""

import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from postroom.cli.application import application_of
from postroom.cli.options import AsJson, DataDir, command_group, settings_for
from postroom.cli.output import show_json, show_list, show_one
from postroom.cli.running import run_transaction
from postroom.core.errors import BadInput, NotFound
from postroom.core.lifecycle import JOB

if TYPE_CHECKING:
    from postroom.core.jobs.job import JobView

app = command_group("Look at jobs, retry or cancel them.")

COLUMNS = ("id", "type", "state", "priority", "attempts", "not_before", "updated_at", "last_error")
STEP_COLUMNS = ("name", "attempt", "started_at", "finished_at", "result_json")

JobId = Annotated[UUID, typer.Argument(metavar="ID", help="The id of the job, as `postroom jobs list` shows it.")]


@app.command("list")
def list_(
    context: typer.Context,
    state: Annotated[
        str | None, typer.Option("--state", help="Only jobs that are queued, running, completed, failed or canceled.")
    ] = None,
    type_: Annotated[str | None, typer.Option("--type", help="Only jobs of this type, such as classify.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="At most so many.")] = 50,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List jobs, the newest first."""
    if state is not None and state not in JOB.states:
        raise BadInput("--state", f"there is no state {state!r}", f"use one of {', '.join(sorted(JOB.states))}")
    from postroom.store.jobs import list_jobs

    transaction = list_jobs(state=state, type=type_, limit=limit)
    jobs = run_transaction(application_of(context), settings_for(data_dir), transaction)
    show_list([_document(job) if as_json else asdict(job) for job in jobs], COLUMNS, as_json=as_json)


@app.command()
def show(context: typer.Context, job_id: JobId, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Show one job with its steps."""
    from postroom.store.jobs import show_job

    job = run_transaction(application_of(context), settings_for(data_dir), show_job(job_id))
    if job is None:
        raise NotFound(f"there is no job {job_id}; `postroom jobs list` shows those that are kept")
    if as_json:
        show_json(_document(job))
        return
    show_one({name: value for name, value in asdict(job).items() if name != "steps"})
    if job.steps:
        typer.echo("")
        show_list([asdict(step) for step in job.steps], STEP_COLUMNS, as_json=False)


@app.command()
def retry(context: typer.Context, job_id: JobId, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Queue a failed or canceled job again with all its attempts, or make a sleeping one due at once."""
    from postroom.store.jobs import retry_job

    run_transaction(application_of(context), settings_for(data_dir), retry_job(job_id, datetime.now(UTC)))
    _confirm(job_id, "queued", as_json)


@app.command()
def cancel(context: typer.Context, job_id: JobId, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Cancel a job: a waiting one at once, a running one at its next step."""
    from postroom.store.jobs import cancel_job

    result = run_transaction(application_of(context), settings_for(data_dir), cancel_job(job_id, datetime.now(UTC)))
    _confirm(job_id, result, as_json)


def _document(job: "JobView") -> dict[str, Any]:
    """The job for programs: what is stored as JSON text is JSON here too."""
    row = asdict(job)
    row["payload"] = json.loads(row.pop("payload_json"))
    for step in row["steps"]:
        text = step.pop("result_json")
        step["result"] = None if text is None else json.loads(text)
    return row


def _confirm(job_id: UUID, result: str, as_json: bool) -> None:
    show_json({"id": job_id, "result": result}) if as_json else typer.echo(f"{job_id}  {result}")
