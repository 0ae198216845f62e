"""`postroom audit`: what was done, and by whom."""

from typing import Annotated

import typer

from postroom.cli.options import AsJson, DataDir, command_group, settings_for
from postroom.cli.output import show_list
from postroom.cli.running import call

app = command_group("Show the audit log.")

COLUMNS = ("seq", "at", "actor", "role", "action", "object_type", "object_id", "reason")


@app.command("list")
def list_(
    context: typer.Context,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="At most this many.")] = 50,
    actor: Annotated[str | None, typer.Option("--actor", help="Only what this actor did, such as cli:ada.")] = None,
    action: Annotated[
        str | None, typer.Option("--action", help="Only actions of this name, such as token.create.")
    ] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List what was done, newest first. Nothing in the log can be changed or deleted."""
    from postroom.manage.audit import list_audit

    found = call(context, settings_for(data_dir), list_audit, limit, actor=actor, action=action)
    show_list(found, COLUMNS, as_json=as_json)
