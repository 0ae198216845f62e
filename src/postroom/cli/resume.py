"""`postroom resume`: end a pause."""

from postroom.cli.operator import operator_signature
from postroom.cli.pause import Account
from postroom.cli.session import Session, one_command
from postroom.manage.kill_switch import resume_changes

app = one_command()


@app.command()
def resume(session: Session, account: Account = None) -> None:
    """Allow changes to mailboxes again; actions that waited are done now."""
    released = session.call(resume_changes, account, operator_signature())
    row = {"was_paused": released is not None, "jobs_released": released or 0}
    line = "Nothing was paused." if released is None else f"Resumed; {released} waiting jobs continue."
    session.show_line(row, line)
