"""`postroom jobs`: list, retry, cancel or dismiss jobs."""

from dataclasses import asdict
from functools import partial
from typing import Annotated

from postroom.interfaces.cli.one_or_many import Found, OneOrMany
from postroom.interfaces.cli.options import Yes
from postroom.interfaces.cli.parameters import Without
from postroom.interfaces.cli.progress import report
from postroom.interfaces.cli.session import Session, command_group
from postroom.interfaces.cli.table import add_commands
from postroom.operations.jobs import jobs
from postroom.operations.jobs.jobs import JobSelection, Verb
from postroom.words.jobs import PAST

app = command_group("List, retry, cancel or dismiss jobs.")
add_commands(app, "jobs", "jobs.jobs")

OneJob = Annotated[str | None, jobs.JOB.typed]


@app.command()
def retry(session: Session, job_id: OneJob = None, *, selection: JobSelection, yes: Yes = False) -> None:
    """Queue failed or canceled jobs again with all their attempts, or make a waiting job due at once.

    Give one job, or filters: all failed jobs that match are counted, and retried when you confirm.
    """
    _act(session, "retry", job_id, selection, yes)


@app.command()
def cancel(session: Session, job_id: OneJob = None, *, selection: JobSelection, yes: Yes = False) -> None:
    """Cancel jobs: waiting ones at once, running ones at their next step.

    Give one job, or filters: all jobs that match, and wait or run, are counted, and canceled when you confirm.
    """
    _act(session, "cancel", job_id, selection, yes)


@app.command()
def dismiss(
    session: Session, job_id: OneJob = None, *, selection: Annotated[JobSelection, Without("state")], yes: Yes = False
) -> None:
    """Dismiss failed jobs: they count as canceled, and can still be retried.

    Give one job, or filters: all failed jobs that match are counted, and dismissed when you confirm.
    """
    _act(session, "dismiss", job_id, selection, yes)


def _act(session: Session, verb: Verb, job_id: str | None, selection: JobSelection, yes: bool) -> None:
    def find() -> Found:
        found = session.call(jobs.select_jobs, verb, selection)
        return Found(found.ids, found.by_type)

    asked = {name: str(value) for name, value in asdict(selection).items() if value is not None}
    act = {"retry": jobs.retry_job, "cancel": jobs.cancel_job, "dismiss": jobs.dismiss_job}[verb]
    act_on_all = partial(jobs.apply_to_jobs, verb=verb, asked=asked, report=lambda seen, _done: report("jobs", seen))
    OneOrMany("job", jobs.JOB.find, PAST[verb], act, find, act_on_all).run(session, job_id, selection, yes=yes)
