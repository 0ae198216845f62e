"""`postroom submission`: accept mail of senders only."""

from postroom.interfaces.cli.running import run_until_stopped
from postroom.interfaces.cli.session import Session, one_command

app = one_command()


@app.command()
def submission(session: Session) -> None:
    """Accept mail of senders over SMTP only, beside other processes on the same database. Ctrl-C stops it cleanly."""
    run_until_stopped(session.application.submission(session.settings, ready=session.announce("Submission is at")))
