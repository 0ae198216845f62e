"""`postroom doctor`: check what Postroom relies on, and say what to do."""

from typing import TYPE_CHECKING

import typer

from postroom.core.errors import PostroomError
from postroom.interfaces.cli.output import cell, show_json
from postroom.interfaces.cli.progress import progress
from postroom.interfaces.cli.session import Session, one_command

if TYPE_CHECKING:
    from postroom.operations.installation.checks import Check

app = one_command()


@app.command()
def doctor(session: Session) -> None:
    """Check the machine, the settings, the database, the keys, the accounts and their connectors; say what to do next.

    Exits with 1 if something needs to be fixed.
    """
    from postroom.operations.installation import health
    from postroom.operations.installation.checks import Check
    from postroom.operations.installation.database import is_created
    from postroom.operations.installation.use_checks import NOT_STARTED, by_urgency, next_step
    from postroom.operations.installation.vault import vault_of

    settings = session.settings
    try:
        in_effect = session.live_settings.current
    except PostroomError:
        in_effect = settings
    found, setup = health.machine_checks(in_effect, session.data_dir), None
    if is_created(settings):
        try:
            with progress(session.as_json):
                found += session.call(health.database_checks, settings, vault_of(settings))
            setup = session.call(health.setup_step, settings)
        except PostroomError as error:
            found.append(health.unavailable(error, settings))
    else:
        found.append(health.NOT_CREATED)
        setup = NOT_STARTED
    found, width = by_urgency(found), max(len(check.name) for check in found)
    for check in found:
        show_json(check) if session.as_json else _show(check, width)
    step = next_step(found, setup)
    session.show_line(Check("next", "ok", step), f"\nNext: {cell(step)}")
    if any(check.verdict == "fail" for check in found):
        raise typer.Exit(1)


def _show(check: "Check", width: int) -> None:
    typer.echo(f"{check.verdict:<4}  {check.name:<{width}}  {cell(check.found)}")
    if check.remedy:
        typer.echo(f"      -> {cell(check.remedy)}")
