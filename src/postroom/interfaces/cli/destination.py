"""`postroom destination`: where outgoing mail goes, and where it waits."""

from typing import Annotated

import typer

from postroom.interfaces.cli.options import Reason
from postroom.interfaces.cli.session import Session, command_group

app = command_group("Pause and resume destinations of outgoing mail; list those that are paused.")

COLUMNS = ("destination", "reason", "paused_by", "created_at")

Destination = Annotated[
    str, typer.Argument(metavar="DOMAIN", help="The domain of the recipients, or the name of the smart host.")
]


@app.command("list")
def list_(session: Session) -> None:
    """List the destinations that are paused."""
    from postroom.operations.outbound.destinations import list_destination_pauses

    session.show_list(session.call(list_destination_pauses), COLUMNS)


@app.command()
def pause(session: Session, domain: Destination, reason: Reason = None) -> None:
    """Send nothing to a destination; mail that waits is kept. Safe to repeat."""
    from postroom.operations.outbound.destinations import pause_destination

    session.because(reason).act(pause_destination, domain)
    session.show_result(domain, "paused")


@app.command()
def resume(session: Session, domain: Destination) -> None:
    """Send to a destination again. What was held is tried within half a minute."""
    from postroom.operations.outbound.destinations import resume_destination

    session.act(resume_destination, domain)
    session.show_result(domain, "resumed")
