"""`postroom directions`: what the model is told about your wishes in general."""

from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from postroom.cli.application import application_of
from postroom.cli.operator import operator_signature
from postroom.cli.options import AsJson, DataDir, command_group, settings_for
from postroom.cli.output import show_json, show_list
from postroom.cli.rule_places import changing, scope_ref
from postroom.cli.running import run_transaction
from postroom.core.errors import BadInput, Conflict, NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from postroom.store.directions import Direction, DirectionView
    from postroom.store.engine.database import Database

app = command_group("Tell the model your wishes in general; look at them, change them.")

COLUMNS = ("id", "position", "scope", "scope_ref", "enabled", "content")

Id = Annotated[str, typer.Argument(metavar="ID", help="The direction's id, or as much of its end as is unique.")]
Account = Annotated[
    str | None, typer.Option("--account", metavar="ID_OR_ADDRESS", help="Only for mail of this account.")
]


@app.command("list")
def list_(context: typer.Context, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List the directions in the order in which the model is told."""
    from postroom.store.directions import list_directions

    found = run_transaction(application_of(context), settings_for(data_dir), list_directions())
    show_list([asdict(each) for each in found], COLUMNS, as_json=as_json)


@app.command()
def add(
    context: typer.Context,
    content: Annotated[str, typer.Argument(metavar="TEXT", help="What you wish, in words.")],
    account: Account = None,
    position: Annotated[int, typer.Option("--position", help="Its place: the lowest goes first.")] = 0,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Add a direction."""

    async def adding(database: "Database") -> "DirectionView":
        from postroom.store.directions import Direction, add_direction
        from postroom.store.engine.ids import new_id

        scope = "global" if account is None else "account"
        direction = Direction(content, scope, await scope_ref(database, scope, account), position)
        return await database.run(add_direction(new_id(), direction, operator_signature(), datetime.now(UTC)))

    _print_result(changing(context, data_dir, adding).id, "added", as_json)


@app.command()
def edit(
    context: typer.Context,
    id: Id,
    content: Annotated[str | None, typer.Option("--text", help="What you wish instead.")] = None,
    account: Account = None,
    everywhere: Annotated[bool, typer.Option("--everywhere", help="For mail of all accounts.")] = False,
    position: Annotated[int | None, typer.Option("--position", help="Its place: the lowest goes first.")] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Change a direction. What is not given stays as it is."""
    if account is not None and everywhere:
        raise BadInput("--everywhere", "contradicts --account", "give one of them")
    if content is None and account is None and position is None and not everywhere:
        raise BadInput("edit", "is told nothing", "give --text, --position, --account or --everywhere")

    async def editing(database: "Database") -> UUID:
        before = await _found(database, id)
        after = before.direction
        if everywhere or account is not None:
            scope = "global" if everywhere else "account"
            after = replace(after, scope=scope, scope_ref=await scope_ref(database, scope, account))
        after = replace(after, content=after.content if content is None else content)
        after = replace(after, position=after.position if position is None else position)
        return await _change(database, before, after)

    _print_result(changing(context, data_dir, editing), "changed", as_json)


@app.command()
def remove(context: typer.Context, id: Id, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Remove a direction."""

    async def removing(database: "Database") -> UUID:
        from postroom.store.directions import remove_direction

        found = await _found(database, id)
        await database.run(remove_direction(found.id, operator_signature(), datetime.now(UTC)))
        return found.id

    _print_result(changing(context, data_dir, removing), "removed", as_json)


@app.command()
def enable(context: typer.Context, id: Id, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Tell the model again. Safe to repeat."""
    _switch(context, data_dir, id, True, as_json)


@app.command()
def disable(context: typer.Context, id: Id, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Keep a direction, but do not tell the model. Safe to repeat."""
    _switch(context, data_dir, id, False, as_json)


def _switch(context: typer.Context, data_dir: Path | None, id: str, enabled: bool, as_json: bool) -> None:
    async def switching(database: "Database") -> UUID:
        before = await _found(database, id)
        if before.enabled == enabled:
            return before.id
        return await _change(database, before, replace(before.direction, enabled=enabled))

    _print_result(changing(context, data_dir, switching), "enabled" if enabled else "disabled", as_json)


async def _change(database: "Database", before: "DirectionView", after: "Direction") -> UUID:
    from postroom.store.directions import edit_direction

    return (await database.run(edit_direction(before, after, operator_signature(), datetime.now(UTC)))).id


async def _found(database: "Database", given: str) -> "DirectionView":
    from postroom.store.directions import list_directions

    found = await database.run(list_directions())
    return found[one_of_ids("direction", given, [each.id for each in found])]


def one_of_ids(what: str, given: str, ids: "Sequence[UUID]") -> int:
    """Which one is meant. Ids made together begin alike, so it is the end that tells them apart."""
    found = [number for number, id in enumerate(ids) if len(given) >= 4 and str(id).endswith(given.lower())]
    if not found:
        raise NotFound(f"there is no {what} {given}; `postroom {what.replace(' ', '-')}s list` shows those there are")
    if len(found) > 1:
        raise Conflict("ID", f"{len(found)} end in {given}", "give more of it")
    return found[0]


def _print_result(id: UUID, result: str, as_json: bool) -> None:
    show_json({"id": id, "result": result}) if as_json else typer.echo(f"{id}  {result}")
