"""`postroom migrate`: the schema."""

from typing import TYPE_CHECKING, Annotated

import typer

from postroom.cli.application import application_of
from postroom.cli.options import AsJson, DataDir, one_command, settings_for
from postroom.cli.output import show_json
from postroom.cli.running import with_database

if TYPE_CHECKING:
    from postroom.store.engine.database import Database

app = one_command()


@app.command()
def migrate(
    context: typer.Context,
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; exit with 1 when migrations are pending.")
    ] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Bring the database up to date. Safe to repeat, to interrupt, and to run from several processes at once."""
    settings = settings_for(data_dir)
    names = with_database(application_of(context), settings, _pending if check else _migrate)
    if as_json:
        show_json({"pending" if check else "applied": names})
    else:
        typer.echo("\n".join(f"{'pending' if check else 'applied'}  {name}" for name in names) or "up to date")
    if check and names:
        raise typer.Exit(1)


async def _pending(database: "Database") -> list[str]:
    from postroom.store.engine.migrate import pending

    return await pending(database)


async def _migrate(database: "Database") -> list[str]:
    from postroom.store.engine.migrate import migrate

    return await migrate(database)
