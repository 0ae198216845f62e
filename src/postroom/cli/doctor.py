"""`postroom doctor`: check what Postroom relies on, and say what to do."""

from typing import TYPE_CHECKING

import typer

from postroom.cli.options import AsJson, DataDir, one_command, settings_for
from postroom.cli.output import cell, show_json
from postroom.cli.running import call
from postroom.core.errors import PostroomError

if TYPE_CHECKING:
    from postroom.manage.checks import Check

app = one_command()


@app.command()
def doctor(context: typer.Context, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Check the machine, the settings, the database, the keys, the accounts and their connectors.

    Exits with 1 if something needs to be fixed.
    """
    from postroom.compose.google import pubsub_key_file, vault_of
    from postroom.manage import health
    from postroom.manage.database import is_created

    settings = settings_for(data_dir)
    found = health.machine_checks(settings, data_dir, pubsub_key_file(settings))
    if is_created(settings):
        try:
            found += call(context, settings, health.database_checks, settings, vault_of(settings))
        except PostroomError as error:
            found.append(health.unavailable(error))
    else:
        found.append(health.NOT_CREATED)
    width = max(len(check.name) for check in found)
    for check in found:
        show_json(check) if as_json else _show(check, width)
    if any(check.verdict == "fail" for check in found):
        raise typer.Exit(1)


def _show(check: "Check", width: int) -> None:
    typer.echo(f"{check.verdict:<4}  {check.name:<{width}}  {cell(check.found)}")
    if check.remedy:
        typer.echo(f"      -> {check.remedy}")
