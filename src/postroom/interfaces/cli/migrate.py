"""`postroom migrate`: update the database schema."""

from typing import Annotated

import typer

from postroom.interfaces.cli.progress import progress
from postroom.interfaces.cli.session import Session, one_command
from postroom.operations.operation import Argument

app = one_command()


@app.command()
def migrate(
    session: Session,
    check: Annotated[bool, Argument("Change nothing; exit with 1 if migrations are pending.")] = False,
    no_backup: Annotated[bool, Argument("Make no backup first, and ask for none.")] = False,
) -> None:
    """Bring the database up to date. Safe to repeat, to interrupt, and to run from several processes at once.

    A database that holds data is backed up first (SQLite), or must have been in the last day (PostgreSQL); `postroom
    upgrade` does that and more.
    """
    from postroom.operations.installation import database, upgrades

    if check:
        names, state = session.call(database.pending), "pending"
    else:
        with progress(session.as_json) as report:
            backs_up = False if no_backup else None
            done = session.call(upgrades.upgrade, session.settings, backs_up=backs_up, progress=report)
        names, state = done.applied, "applied"
        if done.backup is not None and not session.as_json:
            typer.echo(f"backup   {done.backup}")
    session.show_line({state: names}, "\n".join(f"{state}  {name}" for name in names) or "up to date")
    if check and names:
        raise typer.Exit(1)
