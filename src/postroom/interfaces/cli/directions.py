"""`postroom directions`: general instructions for the model."""

from typing import Annotated, Any

import typer

from postroom.core.errors import BadInput
from postroom.interfaces.cli.session import Session, command_group
from postroom.operations.rules.guidance import (
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
def list_(session: Session) -> None:
    """List the directions in the order in which the model gets them."""
    found = session.call(list_guidance, "direction")
    session.show_list([each.row for each in found], COLUMNS)


@app.command()
def add(
    session: Session,
    content: Annotated[str, typer.Argument(metavar="TEXT", help="What you want, in words.")],
    account: Account = None,
    position: Annotated[int, typer.Option("--position", help="Its position: the lowest comes first.")] = 0,
) -> None:
    """Add a direction."""
    direction = Direction(content, "global" if account is None else "account", account, position)
    added = session.act(add_guidance, direction)
    session.show_result(added.id, "added")


@app.command()
def edit(
    session: Session,
    id: Id,
    content: Annotated[str | None, typer.Option("--text", help="The new text.")] = None,
    account: Account = None,
    everywhere: Annotated[bool, typer.Option("--everywhere", help="Apply it to the mail of all accounts.")] = False,
    position: Annotated[int | None, typer.Option("--position", help="Its position: the lowest comes first.")] = None,
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
    changed = session.act(edit_guidance, "direction", id, changes)
    session.show_result(changed.id, "changed")


@app.command()
def remove(session: Session, id: Id) -> None:
    """Remove a direction."""
    removed = session.act(remove_guidance, "direction", id)
    session.show_result(removed.id, "removed")


@app.command()
def enable(session: Session, id: Id) -> None:
    """Give the direction to the model again. Safe to repeat."""
    _switch(session, id, True)


@app.command()
def disable(session: Session, id: Id) -> None:
    """Keep a direction but no longer give it to the model. Safe to repeat."""
    _switch(session, id, False)


def _switch(session: Session, id: str, enabled: bool) -> None:
    found = session.act(switch_guidance, "direction", id, enabled)
    session.show_result(found.id, "enabled" if enabled else "disabled")
