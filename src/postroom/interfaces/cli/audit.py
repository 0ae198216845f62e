"""`postroom audit`: what was done, and by whom."""

from typing import Annotated

import typer

from postroom.interfaces.cli.options import Limit
from postroom.interfaces.cli.session import Session, command_group

app = command_group("Show the audit log.")

COLUMNS = ("seq", "at", "actor", "role", "action", "object_type", "object_id", "reason")


@app.command("list")
def list_(
    session: Session,
    limit: Limit = 50,
    actor: Annotated[str | None, typer.Option("--actor", help="Only what this actor did, such as cli:ada.")] = None,
    action: Annotated[
        str | None, typer.Option("--action", help="Only actions of this name, such as token.create.")
    ] = None,
) -> None:
    """List what was done, newest first. Nothing in the log can be changed or deleted."""
    from postroom.operations.people.audit import list_audit

    found = session.call(list_audit, limit, actor=actor, action=action)
    session.show_list(found, COLUMNS)
