"""`postroom backfill`: fetch a chosen part of the archive, with its cost known before and capped."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Annotated

import typer

from postroom.core.backfill.plan import planned_backfills
from postroom.core.days import day_in, zone_named
from postroom.core.errors import BadInput
from postroom.interfaces.cli.backfill_output import estimate_lines, estimate_row, show_backfill
from postroom.interfaces.cli.backfill_watch import watch_backfill
from postroom.interfaces.cli.output import show_json, show_one
from postroom.interfaces.cli.session import Session, command_group
from postroom.interfaces.cli.table import add_commands
from postroom.operations.backfill.backfill_estimate import MadeEstimate
from postroom.operations.backfill.backfills import ONE_BACKFILL, create_backfill, job_row, make_estimate
from postroom.operations.operation import Argument

app = command_group("Fetch old mail of chosen categories: plan, estimate, create, watch, pause.")
add_commands(app, "backfill", "backfill.backfills", show=show_backfill)

PLAN_COLUMNS = ("category", "date_from", "date_to", "reason")


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
    session.show_list(planned_backfills(_today(session)), PLAN_COLUMNS)
    if not session.as_json:
        typer.echo("\nNewsletters are skipped: they are most of an archive, and hold the least.")


@app.command()
def estimate(session: Session, wanted: Windows) -> None:
    """Estimate what a backfill would find, cost and take. It reads a sample of up to 200 messages and ingests nothing.

    The mailbox's connector counts and samples, so Postroom must be running. It takes up to a minute.
    """
    for made in _estimates(session, wanted):
        show_json(estimate_row(made)) if session.as_json else _show_estimate(made)


@app.command()
def create(
    session: Session,
    wanted: Windows,
    background: Annotated[bool, Argument("Work only while no live mail waits.")] = False,
    resume_daily: Annotated[bool, Argument("Continue by itself on the day after one that ended at the cap.")] = False,
    act: Annotated[bool, Argument("Carry out decisions about old mail; by default they are only recorded.")] = False,
    consent: Annotated[bool, Argument("You agree to the estimate, whatever it is; do not ask.")] = False,
) -> None:
    """Create a backfill: what it would find, cost and take is shown, and it is created when you agree."""
    if not consent and not sys.stdin.isatty():
        remedy = "give --consent if you agree to have this old mail read; `postroom backfill estimate` shows the cost"
        raise BadInput("--consent", "is missing, and there is no terminal to ask on", remedy)
    made: list[MadeEstimate] = []
    for each in _estimates(session, wanted):
        made.append(each)
        _show_estimate(each, err=session.as_json)
    if not consent:
        count = "this backfill" if len(made) == 1 else f"these {len(made)} backfills"
        typer.confirm(f"Do you agree to have this old mail read, and create {count}?", abort=True, err=session.as_json)
    mode = "background" if background else "batch"
    for each in made:
        _create(session, each, mode=mode, resume_daily=resume_daily, acts=act)


@app.command()
def watch(
    session: Session,
    job: Annotated[str, ONE_BACKFILL.typed],
    every: Annotated[float, Argument("Seconds between two looks.", 0.01, 3_600)] = 2.0,
) -> None:
    """Watch a backfill until it ends, is paused or reaches its cap. Ctrl-C stops only the watching."""
    id = session.call(ONE_BACKFILL.find, job)
    try:
        ended = session.call(watch_backfill, session.settings, id, every, session.as_json)
    except KeyboardInterrupt:
        typer.echo(f"\nNo longer watching. The backfill goes on; `postroom backfill pause {job}` pauses it.", err=True)
        raise typer.Exit(130) from None
    if ended.status == "error":
        raise typer.Exit(1)


def _today(session: Session) -> date:
    return day_in(session.clock(), zone_named(session.settings.backfill.time_zone))


def _estimates(session: Session, wanted: Windows) -> Iterator[MadeEstimate]:
    for categories, first, last in list(wanted.of(_today(session))):
        if sys.stderr.isatty():
            typer.echo(f"Counting {', '.join(categories)}; this takes up to a minute …", err=True)
        yield session.ask(
            make_estimate,
            account=wanted.account,
            categories=categories,
            date_from=first,
            date_to=last,
            rate_limit_per_hour=wanted.rate,
            daily_cost_cap_cents=wanted.cap,
        )


def _day(option: str, text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise BadInput(option, f"{text!r} is not a day", "write it as 2019-01-31") from None


def _show_estimate(made: MadeEstimate, *, err: bool = False) -> None:
    show_one(estimate_lines(made), err=err)
    typer.echo(err=err)


def _create(session: Session, made: MadeEstimate, *, mode: str, resume_daily: bool, acts: bool) -> None:
    created = session.ask(
        create_backfill,
        estimate=made.id,
        agreed_micros=made.form.cost_micros.expected,
        mode=mode,
        resume_daily=resume_daily,
        acts=acts,
    )
    row = {**job_row(created.job), "overlaps": [str(id) for id in created.overlaps]}
    line = f"{created.job.id}  {created.job.status}  {', '.join(created.job.target_categories)}"
    if created.overlaps:
        others = ", ".join(map(str, created.overlaps))
        line += f"\n  overlaps with {others}; that is safe: messages are recognised and ingested once"
    session.show_line(row, line)
