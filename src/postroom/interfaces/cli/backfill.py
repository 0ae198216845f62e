"""`postroom backfill`: fetch a chosen part of the archive, with its cost known before and capped."""

import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Annotated, Any, TypeVar
from uuid import UUID

import typer

from postroom.core.backfill.job import NewBackfill
from postroom.core.backfill.plan import planned_backfills
from postroom.core.backfill.standing import standing
from postroom.core.backfill.window import day_in, zone_named
from postroom.core.errors import BadInput
from postroom.interfaces.cli.backfill_output import estimate_lines, estimate_row, job_lines, job_row, list_row
from postroom.interfaces.cli.backfill_watch import watch_backfill
from postroom.interfaces.cli.operator import operator_signature
from postroom.interfaces.cli.options import Limit, Reason
from postroom.interfaces.cli.output import show_json, show_one
from postroom.interfaces.cli.session import Session, command_group
from postroom.operations.accounts.accounts import account_for
from postroom.operations.backfill.backfill import Backfills, backfills_of
from postroom.operations.backfill.backfill_estimate import MadeEstimate, estimates_of
from postroom.operations.operation import Argument

T = TypeVar("T")

app = command_group("Fetch old mail of chosen categories: plan, estimate, create, watch, pause.")

COLUMNS = ("id", "status", "categories", "from", "to", "processed", "skipped", "spent", "expected", "mailbox")
PLAN_COLUMNS = ("category", "date_from", "date_to", "reason")

Id = Annotated[UUID, typer.Argument(metavar="ID", help="The id, as `postroom backfill list` shows it.")]
Account = Annotated[
    str | None, typer.Option("--account", metavar="ADDRESS", help="The mailbox; needed if there are several.")
]


@dataclass(frozen=True)
class Windows:
    """Which mail of which mailbox, and at what pace: for an estimate, and for the backfill that it is made for."""

    category: Annotated[
        Sequence[str],
        Argument("Which mail: finance, health, relationship, travel or newsletters; repeatable."),
    ] = ()
    date_from: Annotated[str | None, Argument("The first day, such as 2019-01-01.", typed_as="--from DAY")] = None
    date_to: Annotated[str | None, Argument("The last day, inclusive; default: today.", typed_as="--to DAY")] = None
    account: Annotated[
        str | None, Argument("The mailbox; needed if there are several.", typed_as="--account ADDRESS")
    ] = None
    rate: Annotated[int | None, Argument("Messages to read per hour (`backfill.rate_limit_per_hour`).")] = None
    cap: Annotated[int | None, Argument("Cents per day (`backfill.daily_cost_cap_cents`).", typed_as="--cap CENTS")] = (
        None
    )
    planned: Annotated[bool, Argument("All of `postroom backfill plan`, instead of --category.", typed_as="--plan")] = (
        False
    )

    def of(self, today: date) -> Iterator[tuple[tuple[str, ...], date, date]]:
        """The categories and days of each backfill that the options ask for."""
        if self.planned:
            if self.category or self.date_from or self.date_to:
                raise BadInput("--plan", "is combined with --category, --from or --to", "use either")
            for each in planned_backfills(today):
                yield (each.category,), each.date_from, each.date_to
            return
        if not self.category:
            raise BadInput("--category", "is missing", "name one, such as finance, or give --plan for the whole plan")
        if self.date_from is None:
            remedy = "name the first day, such as 2019-01-01; `postroom backfill plan` helps"
            raise BadInput("--from", "is missing", remedy)
        last = today if self.date_to is None else _day("--to", self.date_to)
        yield tuple(self.category), _day("--from", self.date_from), last


@app.command()
def plan(session: Session) -> None:
    """Show what is worth fetching, and how far back. `postroom backfill create --plan` creates all of it."""
    session.show_list([each._asdict() for each in planned_backfills(_today(session))], PLAN_COLUMNS)
    if not session.as_json:
        typer.echo("\nNewsletters are skipped: they are most of an archive, and hold the least.")


@app.command()
def estimate(session: Session, wanted: Windows) -> None:
    """Estimate what a backfill would find, cost and take. It reads a sample of up to 200 messages and ingests nothing.

    The mailbox's connector counts and samples, so Postroom must be running. It takes up to a minute.
    """
    for new in _wanted(session, wanted):
        made = _estimated(session, new)
        show_json(estimate_row(made)) if session.as_json else _show_estimate(made)


@app.command()
def create(
    session: Session,
    wanted: Windows,
    background: Annotated[bool, typer.Option("--background", help="Work only while no live mail waits.")] = False,
    resume_daily: Annotated[
        bool, typer.Option("--resume-daily", help="Continue by itself on the day after one that ended at the cap.")
    ] = False,
    act: Annotated[
        bool, typer.Option("--act", help="Carry out decisions about old mail; by default they are only recorded.")
    ] = False,
    consent: Annotated[
        bool, typer.Option("--consent", help="You agree to the estimate, whatever it is; do not ask.")
    ] = False,
) -> None:
    """Create a backfill: what it would find, cost and take is shown, and it is created when you agree."""
    if not consent and not sys.stdin.isatty():
        remedy = "give --consent if you agree to have this old mail read; `postroom backfill estimate` shows the cost"
        raise BadInput("--consent", "is missing, and there is no terminal to ask on", remedy)
    made: list[MadeEstimate] = []
    for new in _wanted(session, wanted):
        changed = replace(new, mode="background" if background else "batch", resume_daily=resume_daily, acts=act)
        made.append(_estimated(session, changed))
        _show_estimate(made[-1], err=session.as_json)
    if not consent:
        count = "this backfill" if len(made) == 1 else f"these {len(made)} backfills"
        typer.confirm(f"Do you agree to have this old mail read, and create {count}?", abort=True, err=session.as_json)
    for each in made:
        _create(session, each)


@app.command("list")
def list_(
    session: Session,
    account: Account = None,
    status: Annotated[
        str | None, typer.Option("--status", help="Only backfills in this state, such as active.")
    ] = None,
    limit: Limit = 50,
) -> None:
    """List backfills, newest first."""
    identity = None if account is None else session.call(account_for, account).endpoint_identity
    found = _run(session, lambda all: all.list_jobs(limit, endpoint_identity=identity, status=status))
    session.show_list([job_row(job) if session.as_json else list_row(job) for job in found], COLUMNS)


@app.command()
def show(session: Session, id: Id) -> None:
    """Show one backfill: its progress and cost, beside what was estimated, and what it found by kind and year."""
    job = _run(session, lambda all: all.load(id))
    outcome = session.call(lambda database: estimates_of(database, session.settings).outcome(id))
    found = _run(session, lambda all: all.found(id))
    if session.as_json:
        show_json({**job_row(job, outcome), "found": [each._asdict() for each in found]})
    else:
        at = standing(job, outcome.expected_to_read, None, datetime.now(UTC))
        show_one(job_lines(job, outcome, at, found))


@app.command()
def pause(session: Session, id: Id, reason: Reason = None) -> None:
    """Pause a backfill. Its connector stops within half a minute, and decisions about its mail wait."""
    session.show_result(id, _run(session, lambda all: all.pause(id, operator_signature(reason))).status)


@app.command()
def resume(session: Session, id: Id, reason: Reason = None) -> None:
    """Continue a backfill that was paused, reached its cap or failed, where it stopped."""
    session.show_result(id, _run(session, lambda all: all.resume(id, operator_signature(reason))).status)


@app.command()
def cancel(session: Session, id: Id, reason: Reason = None) -> None:
    """Cancel a backfill for good. What it brought in stays; no model is asked about the rest of it."""
    session.show_result(id, _run(session, lambda all: all.cancel(id, operator_signature(reason))).status)


@app.command()
def watch(
    session: Session,
    id: Id,
    every: Annotated[float, typer.Option("--every", min=0.01, max=3_600, help="Seconds between two looks.")] = 2.0,
) -> None:
    """Watch a backfill until it ends, is paused or reaches its cap. Ctrl-C stops watching; the backfill goes on."""
    try:
        job = session.call(lambda database: watch_backfill(database, session.settings, id, every, session.as_json))
    except KeyboardInterrupt:
        typer.echo(f"\nNo longer watching. The backfill goes on; `postroom backfill pause {id}` pauses it.", err=True)
        raise typer.Exit(130) from None
    if job.status == "error":
        raise typer.Exit(1)


def _run(session: Session, use: Callable[[Backfills], Coroutine[Any, Any, T]]) -> T:
    return session.call(lambda database: use(backfills_of(database, session.settings)))


def _today(session: Session) -> date:
    return day_in(datetime.now(UTC), zone_named(session.settings.backfill.time_zone))


def _wanted(session: Session, wanted: Windows) -> list[NewBackfill]:
    windows = list(wanted.of(_today(session)))
    defaults, mailbox = session.settings.backfill, session.call(account_for, wanted.account)
    return [
        NewBackfill(
            connector_type=mailbox.provider,
            endpoint_identity=mailbox.endpoint_identity,
            target_categories=categories,
            date_from=first,
            date_to=last,
            rate_limit_per_hour=defaults.rate_limit_per_hour if wanted.rate is None else wanted.rate,
            daily_cost_cap_cents=defaults.daily_cost_cap_cents if wanted.cap is None else wanted.cap,
        )
        for categories, first, last in windows
    ]


def _day(option: str, text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise BadInput(option, f"{text!r} is not a day", "write it as 2019-01-31") from None


def _estimated(session: Session, new: NewBackfill) -> MadeEstimate:
    if sys.stderr.isatty():
        typer.echo(f"Counting {', '.join(new.target_categories)}; this takes up to a minute …", err=True)
    return session.call(lambda database: estimates_of(database, session.settings).estimate(new, operator_signature()))


def _show_estimate(made: MadeEstimate, *, err: bool = False) -> None:
    show_one(estimate_lines(made), err=err)
    typer.echo(err=err)


def _create(session: Session, made: MadeEstimate) -> None:
    created = _run(session, lambda all: all.create(made.agreed, operator_signature()))
    row = {**job_row(created.job), "overlaps": [str(id) for id in created.overlaps]}
    line = f"{created.job.id}  {created.job.status}  {', '.join(created.job.target_categories)}"
    if created.overlaps:
        others = ", ".join(map(str, created.overlaps))
        line += f"\n  overlaps with {others}; that is safe: messages are recognised and ingested once"
    session.show_line(row, line)
