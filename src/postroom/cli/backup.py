"""`postroom backup`: everything in one file, while Postroom runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from postroom.cli.application import application_of
from postroom.cli.backup_output import keys_line, shown_progress
from postroom.cli.options import AsJson, DataDir, one_command, settings_for
from postroom.cli.output import show_json
from postroom.cli.running import run_briefly, with_database

if TYPE_CHECKING:
    from postroom.cli.application import Application
    from postroom.settings.reading import Settings
    from postroom.store.engine.database import Database

app = one_command()


@app.command()
def backup(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write; it must not exist yet.")],
    with_keys: Annotated[
        bool,
        typer.Option(
            "--with-keys",
            help="Put the file of keys in as well: whoever has the backup can then open the accounts' secrets.",
        ),
    ] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Back up the database and the connectors' state into one file, while Postroom runs.

    The copy is of one moment and checked. The keys that open the accounts' secrets are named, and are only in it
    when you ask for that. Settings are not in it.
    """
    from postroom.backup.make import Source, make_backup

    settings = settings_for(data_dir)
    source = Source(settings.data_dir, _url(settings), _keys_needed(application_of(context), settings), with_keys)
    with shown_progress(as_json) as progress:
        made = run_briefly(make_backup(source, file.absolute(), progress))
    size = file.stat().st_size
    if as_json:
        show_json(
            {
                "file": str(file),
                "bytes": size,
                "created_at": made.created_at,
                "database": made.dialect,
                "rows": sum(made.rows.values()),
                "keys_needed": made.keys_needed,
                "keys_included": made.keys_included,
            }
        )
        return
    typer.echo(f"{file}  {size:,} bytes, {sum(made.rows.values()):,} rows of {made.dialect}, checked")
    typer.echo(keys_line(made, settings.data_dir))


def _url(settings: "Settings") -> str | None:
    return settings.database_url.get_secret_value() if settings.database_url is not None else None


def _keys_needed(application: "Application", settings: "Settings") -> list[str]:
    """The keys under which secrets are stored. A database that is not there is told of later."""
    from postroom.system.private_files import DATABASE

    if settings.database_url is None and not (settings.data_dir / DATABASE).exists():
        return []

    async def look(database: "Database") -> list[str]:
        from postroom.store.secret_keys import list_key_uses

        return sorted(use.id for use in await database.run(list_key_uses()) if use.secrets)

    return with_database(application, settings, look)
