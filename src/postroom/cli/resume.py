"""`postroom resume`: end a pause."""

import typer

from postroom.cli.operator import operator_signature
from postroom.cli.options import AsJson, DataDir, one_command, settings_for
from postroom.cli.output import show_line
from postroom.cli.pause import Account
from postroom.cli.running import call
from postroom.manage.kill_switch import resume_changes

app = one_command()


@app.command()
def resume(context: typer.Context, account: Account = None, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Allow changes to mailboxes again; actions that waited are done now."""
    released = call(context, settings_for(data_dir), resume_changes, account, operator_signature())
    row = {"was_paused": released is not None, "jobs_released": released or 0}
    line = "Nothing was paused." if released is None else f"Resumed; {released} waiting jobs continue."
    show_line(row, line, as_json=as_json)
