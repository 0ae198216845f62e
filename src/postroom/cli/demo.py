"""`postroom demo`: the whole program on a sandbox mailbox."""

from postroom.cli.options import Port
from postroom.cli.running import run_until_stopped
from postroom.cli.session import Session, one_command

app = one_command()


@app.command()
def demo(session: Session, port: Port = None) -> None:
    """Try Postroom on a sandbox mailbox in which mail keeps arriving. No account and no network are needed."""
    ready = session.announce("Postroom is at")
    run_until_stopped(session.application.demo(session.settings, port=port, ready=ready))
