"""`postroom resume`: end a pause."""

from typing import Annotated

import typer

from postroom.core.counted import counted
from postroom.interfaces.cli.output import cell
from postroom.interfaces.cli.pause import Account
from postroom.interfaces.cli.session import Session, one_command
from postroom.operations.actions.kill_switch import released_by_resuming, resume_changes

app = one_command()


@app.command()
def resume(
    session: Session,
    account: Account = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not show what waits, and do not ask.")] = False,
) -> None:
    """Allow changes to mailboxes again. What waits is shown first, and done when you confirm. Scripts give --yes."""
    if not yes and (waiting := session.call(released_by_resuming, account)):
        typer.echo("This begins when you resume:", err=True)
        for line in waiting:
            typer.echo(f"  {cell(line)}", err=True)
        typer.confirm("Resume?", abort=True, err=True)
    released = session.act(resume_changes, account)
    row = {"was_paused": released is not None, "jobs_released": released or 0}
    line = "Nothing was paused." if released is None else f"Resumed; {counted(released, 'waiting job')} released."
    session.show_line(row, line)
