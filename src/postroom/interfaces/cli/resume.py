"""`postroom resume`: end a pause."""

import typer

from postroom.interfaces.cli.options import Yes
from postroom.interfaces.cli.output import cell
from postroom.interfaces.cli.session import Session, one_command
from postroom.operations.actions import kill_switch

app = one_command()


@app.command()
def resume(
    session: Session,
    account: kill_switch.Account = None,
    yes: Yes = False,
) -> None:
    """Allow changes to mailboxes again. What waits is shown first, and done when you confirm. Scripts give --yes."""
    if not yes and (waiting := session.call(kill_switch.released_by_resuming, account)):
        typer.echo("This begins when you resume:", err=True)
        for line in waiting:
            typer.echo(f"  {cell(line)}", err=True)
        typer.confirm("Resume?", abort=True, err=True)
    answer = session.act(kill_switch.resume, account)
    session.show_line(answer, answer.done)
