"""`postroom jobs`: list, retry, cancel or dismiss jobs."""

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from postroom.core.lifecycle import JobState
from postroom.interfaces.cli.one_or_many import Found, OneOrMany
from postroom.interfaces.cli.options import Yes
from postroom.interfaces.cli.session import Session, command_group
from postroom.interfaces.cli.table import add_commands
from postroom.words.jobs import PAST

if TYPE_CHECKING:
    from postroom.operations.jobs.jobs import Verb

app = command_group("List, retry, cancel or dismiss jobs.")
add_commands(app, "jobs", "jobs.jobs")

OneJob = Annotated[
    UUID | None, typer.Argument(metavar="ID", help="The id of one job, as `postroom jobs list` shows it.")
]
Type = Annotated[str | None, typer.Option("--type", help="All jobs of this type, such as classify.")]
State = Annotated[JobState | None, typer.Option("--state", help="All jobs in this state, such as failed.")]
Error = Annotated[str | None, typer.Option("--error", metavar="TEXT", help="All whose last error contains this text.")]
Account = Annotated[
    str | None, typer.Option("--account", metavar="ADDRESS", help="All that work on the mailbox of this account.")
]


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
    _act(session, "retry", job_id, (type_, state, error, account), yes)


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
    _act(session, "cancel", job_id, (type_, state, error, account), yes)


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
    _act(session, "dismiss", job_id, (type_, None, error, account), yes)


def _act(
    session: Session,
    verb: "Verb",
    job_id: UUID | None,
    filters: tuple[str | None, JobState | None, str | None, str | None],
    yes: bool,
) -> None:
    from postroom.operations.jobs.jobs import (
        JobSelection,
        apply_to_jobs,
        cancel_job,
        dismiss_job,
        retry_job,
        select_jobs,
    )

    selection = JobSelection(*filters)

    def find() -> Found:
        found = session.call(select_jobs, verb, selection)
        return Found(found.ids, dict(found.by_type))

    asked = {name: str(value) for name, value in asdict(selection).items() if value is not None}
    act = {"retry": retry_job, "cancel": cancel_job, "dismiss": dismiss_job}[verb]
    options = {f"--{name}": value for name, value in asdict(selection).items()}
    act_on_all = partial(apply_to_jobs, verb=verb, asked=asked)
    OneOrMany("job", PAST[verb], act, find, act_on_all).run(session, job_id, options, yes=yes)
