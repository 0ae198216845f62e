"""`postroom migrate`: update the database schema."""

from typing import Annotated

import typer

from postroom.interfaces.cli.session import Session, one_command
from postroom.operations.operation import Argument

app = one_command()


@app.command()
def migrate(
    session: Session,
    check: Annotated[bool, Argument("Change nothing; exit with 1 if migrations are pending.")] = False,
) -> None:
    """Bring the database up to date. Safe to repeat, to interrupt, and to run from several processes at once."""
    from postroom.operations.installation import database

    names = session.call(database.pending if check else database.migrate)
    state = "pending" if check else "applied"
    session.show_line({state: names}, "\n".join(f"{state}  {name}" for name in names) or "up to date")
    if check and names:
        raise typer.Exit(1)
