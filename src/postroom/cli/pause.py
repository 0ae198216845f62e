"""`postroom pause`: change nothing in any mailbox until `postroom resume`."""

from typing import Annotated

import typer

from postroom.cli.operator import operator_signature
from postroom.cli.options import AsJson, DataDir, one_command, settings_for
from postroom.cli.output import show_line
from postroom.cli.running import call
from postroom.manage.kill_switch import pause_changes

app = one_command()

Account = Annotated[
    str | None, typer.Option("--account", metavar="ADDRESS", help="Only this account's mailbox; default: all.")
]


@app.command()
def pause(
    context: typer.Context,
    reason: Annotated[
        str, typer.Option("--reason", help="Why; shown wherever something waits for it.")
    ] = "by the user",
    account: Account = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Stop all changes to mailboxes. Once this command returns, no process changes or sends anything; the output says
    how many requests were in flight. Mail still arrives and is decided on; actions wait."""
    stopped = call(context, settings_for(data_dir), pause_changes, account, reason, operator_signature(reason))
    row = {
        "scope": stopped.pause.scope,
        "reason": stopped.pause.reason,
        "since": stopped.pause.since,
        "on_wire": stopped.on_wire,
        "silent_processes": stopped.silent,
    }
    where = "any mailbox" if account is None else f"the mailbox of {account}"
    line = f"Paused: nothing is changed in {where} until `postroom resume`; {stopped.in_words()}."
    show_line(row, line, as_json=as_json)
