"""`postroom jobs`: list, retry or cancel jobs."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from postroom.cli.options import AsJson, DataDir, choice, command_group, settings_for
from postroom.cli.output import show_json, show_list, show_one, show_result
from postroom.cli.running import call
from postroom.core.lifecycle import JOB

if TYPE_CHECKING:
    from postroom.core.jobs.job import JobView

app = command_group("List, retry or cancel jobs.")

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
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="At most this many.")] = 50,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List jobs, newest first."""
    from postroom.manage.jobs import list_jobs

    wanted = None if state is None else choice("--state", state, sorted(JOB.states))
    found = call(context, settings_for(data_dir), list_jobs, wanted, type_, limit)
    show_list([_document(job) for job in found] if as_json else found, COLUMNS, as_json=as_json)


@app.command()
def show(context: typer.Context, job_id: JobId, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Show one job with its steps."""
    from postroom.manage.jobs import load_job

    job = call(context, settings_for(data_dir), load_job, job_id)
    if as_json:
        show_json(_document(job))
        return
    show_one({name: value for name, value in asdict(job).items() if name != "steps"})
    if job.steps:
        typer.echo("")
        show_list(job.steps, STEP_COLUMNS, as_json=False)


@app.command()
def retry(context: typer.Context, job_id: JobId, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Queue a failed or canceled job again with all its attempts, or make a waiting job due at once."""
    from postroom.manage.jobs import retry_job

    call(context, settings_for(data_dir), retry_job, job_id)
    show_result(job_id, "queued", as_json=as_json)


@app.command()
def cancel(context: typer.Context, job_id: JobId, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Cancel a job: a waiting one at once, a running one at its next step."""
    from postroom.manage.jobs import cancel_job

    show_result(job_id, call(context, settings_for(data_dir), cancel_job, job_id), as_json=as_json)


def _document(job: "JobView") -> dict[str, Any]:
    """Return the job for programs, with stored JSON text as JSON."""
    row = asdict(job)
    row["payload"] = json.loads(row.pop("payload_json"))
    for step in row["steps"]:
        text = step.pop("result_json")
        step["result"] = None if text is None else json.loads(text)
    return row
