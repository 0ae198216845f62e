"""`postroom reclassify`: decides anew about messages, with the rules and the model of today."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from postroom.cli.application import application_of
from postroom.cli.moments import read_moment
from postroom.cli.operator import operator_signature
from postroom.cli.options import AsJson, DataDir, one_command, settings_for
from postroom.cli.output import show_json
from postroom.cli.running import with_database
from postroom.core.errors import BadInput

if TYPE_CHECKING:
    from postroom.store.decisions import Undecided
    from postroom.store.engine.database import Database

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
    """Decide again. What was done before stays done; `postroom undo` takes it back.

    What follows is one batch, which `postroom undo --batch` takes back. Nothing is sent twice.
    """
    if not messages and since is None:
        raise BadInput("MESSAGE", "is missing", "name messages, or give --since")
    settings = settings_for(data_dir)
    start = None if since is None else read_moment("--since", since, datetime.now(UTC), ahead=False)

    async def asking(database: "Database") -> "tuple[int, UUID]":
        chosen = await _named(database, messages or [])
        if start is not None:
            from postroom.store.decisions import undecided

            chosen += await database.run(undecided(start, MOST))
        return await _enqueue(database, chosen, since)

    count, batch = with_database(application_of(context), settings, asking)
    if as_json:
        show_json({"messages": count, "batch_id": str(batch)})
        return
    typer.echo(f"{count} messages are being decided about anew.")
    if count:
        typer.echo(f"`postroom undo --batch {batch}` takes back what follows.")


async def _named(database: "Database", messages: list[UUID]) -> "list[Undecided]":
    from postroom.store.decisions import Undecided, latest_generation
    from postroom.store.mail import load_message

    found: list[Undecided] = []
    for id in messages:
        message = await database.run(load_message(id))
        found.append(Undecided(message.account_id, id, await database.run(latest_generation(id))))
    return found


async def _enqueue(database: "Database", chosen: "list[Undecided]", since: str | None) -> "tuple[int, UUID]":
    """Returns about how many that was not asked already, and the batch of what follows."""
    from postroom.core.jobs.types import CATALOGUE
    from postroom.store.decisions import enqueue_decisions
    from postroom.store.engine.clock import wall_clock
    from postroom.store.engine.ids import new_id
    from postroom.store.job_builders import decide_again

    batch, fresh = new_id(), 0
    jobs = [decide_again(CATALOGUE, account, message, generation + 1, batch) for account, message, generation in chosen]
    wish = {"messages": len(jobs), **({} if since is None else {"since": since})}
    entry = operator_signature().under("messages.reclassify", "batch", str(batch), after=wish)
    for start in range(0, len(jobs), 500):
        told = entry if start == 0 else None
        fresh += await database.run(enqueue_decisions(jobs[start : start + 500], wall_clock(), told))
    return fresh, batch
