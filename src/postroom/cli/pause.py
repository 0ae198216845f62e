"""`postroom pause`: nothing is changed in any mailbox until `postroom resume`."""

from typing import Annotated

import typer

from postroom.cli.operator import operator_signature
from postroom.cli.session import Session, one_command
from postroom.manage.kill_switch import pause_changes

app = one_command()

Account = Annotated[
    str | None, typer.Option("--account", metavar="ADDRESS", help="Only in the mailbox of this account; else in all.")
]


@app.command()
def pause(
    session: Session,
    reason: Annotated[str, typer.Option("--reason", help="Why; shown wherever something waits.")] = "by the user",
    account: Account = None,
) -> None:
    """Stop every change to mailboxes. Once this answers, nothing more is changed or sent by any process; it tells how
    many requests were on their way. Mail still comes in and is decided on; what is to be done waits."""
    stopped = session.call(pause_changes, account, reason, operator_signature(reason))
    row = {
        "scope": stopped.pause.scope,
        "reason": stopped.pause.reason,
        "since": stopped.pause.since,
        "on_wire": stopped.on_wire,
        "silent_processes": stopped.silent,
    }
    where = "any mailbox" if account is None else f"the mailbox of {account}"
    line = f"Paused: nothing is changed in {where} until `postroom resume`; {stopped.told()}."
    session.show_line(row, line)
