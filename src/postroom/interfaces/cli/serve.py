"""`postroom serve`: the whole program in one process."""

import sys

import typer

from postroom.interfaces.cli.options import Host, Port
from postroom.interfaces.cli.running import run_until_stopped
from postroom.interfaces.cli.session import Session, one_command

INVITE = "To set up sign-in, run `{}`: it prints a link for you."

app = one_command()


@app.command()
def serve(session: Session, host: Host = None, port: Port = None) -> None:
    """Run Postroom: pages, mailbox and worker in one process. Ctrl-C stops it cleanly."""
    settings = session.settings_with({"web.host": host, "web.port": port})
    ready = session.announce("Postroom is at")

    def name_the_command(_link: str) -> None:
        """Where nobody watches, the output is kept, in a journal or by a log collector: the link may not be in it."""
        typer.echo(INVITE.format(session.command_line("person add NAME --role admin")))

    invite = session.invite if session.as_json or sys.stdout.isatty() else name_the_command
    run_until_stopped(session.application.serve(settings, ready=ready, invite=invite, presses=session.presses))
