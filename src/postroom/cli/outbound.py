"""`postroom outbound`: mail on its way out, and what a person has to say about it."""

from typing import Annotated
from uuid import UUID

import typer

from postroom.cli.operator import operator_signature
from postroom.cli.options import Limit, Reason, choice
from postroom.cli.session import Session, command_group
from postroom.core.errors import BadInput
from postroom.core.lifecycle import DELIVERY

app = command_group("Look at mail on its way out; settle what became of it.")

COLUMNS = ("id", "kind", "state", "recipients", "subject", "attempts", "not_before", "account", "error")

DeliveryId = Annotated[UUID, typer.Argument(metavar="ID", help="The id, as `postroom outbound list` shows it.")]


@app.command("list")
def list_(
    session: Session,
    state: Annotated[str | None, typer.Option("--state", help="Only mail in this state, such as unknown.")] = None,
    limit: Limit = 50,
) -> None:
    """List outgoing mail, the newest first."""
    from postroom.manage.deliveries import list_deliveries

    wanted = None if state is None else choice("--state", state, sorted(DELIVERY.states))
    session.show_list(session.call(list_deliveries, wanted, limit), COLUMNS)


@app.command()
def show(session: Session, delivery_id: DeliveryId) -> None:
    """Show one outgoing mail: where it stands, and why it waits."""
    from postroom.manage.deliveries import load_delivery

    session.show_one(session.call(load_delivery, delivery_id))


@app.command()
def resolve(
    session: Session,
    delivery_id: DeliveryId,
    sent: Annotated[bool, typer.Option("--sent", help="It was sent: its action is completed.")] = False,
    not_sent: Annotated[bool, typer.Option("--not-sent", help="It was not sent: it is sent now.")] = False,
) -> None:
    """Say what became of a mail whose state is unknown, after you have looked into the mailbox."""
    if sent == not_sent:
        raise BadInput("--sent", "is missing, or stands beside --not-sent", "give --sent, or --not-sent to send it now")
    from postroom.manage.deliveries import resolve_delivery

    outcome = "sent" if sent else "not_sent"
    state = session.call(resolve_delivery, delivery_id, outcome, operator_signature())
    session.show_result(delivery_id, state)


@app.command()
def retry(session: Session, delivery_id: DeliveryId) -> None:
    """Try a mail at once that waits for its next attempt."""
    from postroom.manage.deliveries import hasten_delivery

    session.call(hasten_delivery, delivery_id, operator_signature())
    session.show_result(delivery_id, "due")


@app.command()
def cancel(session: Session, delivery_id: DeliveryId, reason: Reason = None) -> None:
    """Do not send a mail that has not left yet. Its action ends as canceled.

    One that is `stopping` is taken back by the next sender, unless the mailbox shows that it was sent before.
    """
    from postroom.manage.deliveries import cancel_delivery

    state = session.call(cancel_delivery, delivery_id, operator_signature(reason))
    session.show_result(delivery_id, state)
