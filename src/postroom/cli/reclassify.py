"""`postroom reclassify`: decides anew about messages, with the rules and the model of today."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from postroom.cli.application import application_of
from postroom.cli.moments import read_moment
from postroom.cli.options import AsJson, DataDir, one_command, settings_for
from postroom.cli.output import show_json
from postroom.cli.running import with_database
from postroom.core.errors import BadInput

if TYPE_CHECKING:
    from postroom.store.database import Database
    from postroom.store.decisions import Undecided

app = one_command()

MOST = 100_000


@app.command()
def reclassify(
    context: typer.Context,
    messages: Annotated[list[UUID] | None, typer.Argument(metavar="MESSAGE...", help="Ids of messages.")] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", help="All that nobody decided about since: a span such as 7d, or a time."),
    ] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Decide again. What was done before stays done; `postroom undo` takes it back."""
    if not messages and since is None:
        raise BadInput("MESSAGE", "is missing", "name messages, or give --since")
    settings = settings_for(data_dir)
    start = None if since is None else read_moment("--since", since, datetime.now(UTC), ahead=False)

    async def asking(database: "Database") -> int:
        chosen = await _named(database, messages or [])
        if start is not None:
            from postroom.store.decisions import undecided

            chosen += await database.run(undecided(start, MOST))
        return await _enqueue(database, chosen)

    count = with_database(application_of(context), settings, asking)
    show_json({"messages": count}) if as_json else typer.echo(f"{count} messages are being decided about anew.")


async def _named(database: "Database", messages: list[UUID]) -> "list[Undecided]":
    from postroom.store.decisions import Undecided, latest_generation
    from postroom.store.mail import load_message

    found: list[Undecided] = []
    for id in messages:
        message = await database.run(load_message(id))
        found.append(Undecided(message.account_id, id, await database.run(latest_generation(id))))
    return found


async def _enqueue(database: "Database", chosen: "list[Undecided]") -> int:
    from postroom.core.job_types import CATALOGUE
    from postroom.handlers.classify import decide_again
    from postroom.store.clock import wall_clock
    from postroom.store.jobs import enqueue_many

    jobs = [decide_again(CATALOGUE, account, message, generation + 1) for account, message, generation in chosen]
    fresh = 0
    for start in range(0, len(jobs), 500):
        fresh += sum(
            not each.duplicate for each in await database.run(enqueue_many(jobs[start : start + 500], wall_clock()))
        )
    return fresh
