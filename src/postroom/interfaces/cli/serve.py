"""`postroom serve`: the whole program in one process."""

from postroom.interfaces.cli.options import Host, Port
from postroom.interfaces.cli.running import run_until_stopped
from postroom.interfaces.cli.session import Session, one_command

app = one_command()


@app.command()
def serve(session: Session, host: Host = None, port: Port = None) -> None:
    """Run Postroom: pages, mailbox and worker in one process. Ctrl-C stops it cleanly."""
    settings = session.settings_with({"web.host": host, "web.port": port})
    ready = session.announce("Postroom is at")
    run_until_stopped(session.application.serve(settings, ready=ready, invite=session.invite, presses=session.presses))
