"""`postroom pause`: change nothing in any mailbox until `postroom resume`."""

from typing import Annotated

import typer

from postroom.interfaces.cli.session import Session, one_command
from postroom.operations.actions.kill_switch import pause_changes

app = one_command()

Account = Annotated[
    str | None, typer.Option("--account", metavar="ADDRESS", help="Only this account's mailbox; default: all.")
]


@app.command()
def pause(
    session: Session,
    reason: Annotated[
        str, typer.Option("--reason", help="Why; shown wherever something waits for it.")
    ] = "by the user",
    account: Account = None,
) -> None:
    """Stop all changes to mailboxes. Once this command returns, no process changes or sends anything; the output says
    how many requests were in flight. Mail still arrives and is decided on; actions wait."""
    stopped = session.because(reason).act(pause_changes, account, reason)
    row = {
        "scope": stopped.pause.scope,
        "reason": stopped.pause.reason,
        "since": stopped.pause.since,
        "on_wire": stopped.on_wire,
        "silent_processes": stopped.silent,
    }
    where = "any mailbox" if account is None else f"the mailbox of {account}"
    line = f"Paused: nothing is changed in {where} until `postroom resume`; {stopped.in_words()}."
    session.show_line(row, line)
