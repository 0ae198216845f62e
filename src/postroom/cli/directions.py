"""`postroom directions`: general instructions for the model."""

from pathlib import Path
from typing import Annotated, Any

import typer

from postroom.cli.operator import operator_signature
from postroom.cli.options import AsJson, DataDir, command_group, settings_for
from postroom.cli.output import show_list, show_result
from postroom.cli.running import call
from postroom.core.errors import BadInput
from postroom.manage.guidance import (
    Direction,
    add_guidance,
    edit_guidance,
    list_guidance,
    remove_guidance,
    switch_guidance,
)

app = command_group("Give the model general instructions; list or change them.")

COLUMNS = ("id", "position", "scope", "scope_ref", "enabled", "content")

Id = Annotated[str, typer.Argument(metavar="ID", help="The direction's id, or enough of its end to be unique.")]
Account = Annotated[
    str | None, typer.Option("--account", metavar="ID_OR_ADDRESS", help="Only for mail of this account.")
]


@app.command("list")
def list_(context: typer.Context, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List the directions in the order in which the model gets them."""
    found = call(context, settings_for(data_dir), list_guidance, "direction")
    show_list([each.row for each in found], COLUMNS, as_json=as_json)


@app.command()
def add(
    context: typer.Context,
    content: Annotated[str, typer.Argument(metavar="TEXT", help="What you want, in words.")],
    account: Account = None,
    position: Annotated[int, typer.Option("--position", help="Its position: the lowest comes first.")] = 0,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Add a direction."""
    direction = Direction(content, "global" if account is None else "account", account, position)
    added = call(context, settings_for(data_dir), add_guidance, direction, operator_signature())
    show_result(added.id, "added", as_json=as_json)


@app.command()
def edit(
    context: typer.Context,
    id: Id,
    content: Annotated[str | None, typer.Option("--text", help="The new text.")] = None,
    account: Account = None,
    everywhere: Annotated[bool, typer.Option("--everywhere", help="Apply it to the mail of all accounts.")] = False,
    position: Annotated[int | None, typer.Option("--position", help="Its position: the lowest comes first.")] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Change a direction. Anything not given stays as it is."""
    if account is not None and everywhere:
        raise BadInput("--everywhere", "contradicts --account", "give one of them")
    changes: dict[str, Any] = {"scope": "global"} if everywhere else {}
    changes |= {} if account is None else {"scope": "account", "scope_ref": account}
    changes |= {} if content is None else {"content": content}
    changes |= {} if position is None else {"position": position}
    if not changes:
        raise BadInput("edit", "changes nothing", "give --text, --position, --account or --everywhere")
    changed = call(context, settings_for(data_dir), edit_guidance, "direction", id, changes, operator_signature())
    show_result(changed.id, "changed", as_json=as_json)


@app.command()
def remove(context: typer.Context, id: Id, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Remove a direction."""
    removed = call(context, settings_for(data_dir), remove_guidance, "direction", id, operator_signature())
    show_result(removed.id, "removed", as_json=as_json)


@app.command()
def enable(context: typer.Context, id: Id, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Give the direction to the model again. Safe to repeat."""
    _switch(context, data_dir, id, True, as_json)


@app.command()
def disable(context: typer.Context, id: Id, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Keep a direction but no longer give it to the model. Safe to repeat."""
    _switch(context, data_dir, id, False, as_json)


def _switch(context: typer.Context, data_dir: Path | None, id: str, enabled: bool, as_json: bool) -> None:
    found = call(context, settings_for(data_dir), switch_guidance, "direction", id, enabled, operator_signature())
    show_result(found.id, "enabled" if enabled else "disabled", as_json=as_json)
