"""`postroom migrate`: update the database schema."""

from typing import Annotated

import typer

from postroom.cli.options import AsJson, DataDir, one_command, settings_for
from postroom.cli.output import show_line
from postroom.cli.running import call

app = one_command()


@app.command()
def migrate(
    context: typer.Context,
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; exit with 1 if migrations are pending.")
    ] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Bring the database up to date. Safe to repeat, to interrupt, and to run from several processes at once."""
    from postroom.manage import database

    names = call(context, settings_for(data_dir), database.pending if check else database.migrate)
    state = "pending" if check else "applied"
    show_line({state: names}, "\n".join(f"{state}  {name}" for name in names) or "up to date", as_json=as_json)
    if check and names:
        raise typer.Exit(1)
