"""`postroom outbound`: outgoing mail, and the questions about it that only a person can answer."""

from typing import Annotated
from uuid import UUID

import typer

from postroom.cli import outbound_simulate
from postroom.cli.operator import operator_signature
from postroom.cli.options import Limit, Reason, choice
from postroom.cli.session import Session, command_group
from postroom.core.errors import BadInput
from postroom.core.lifecycle import DELIVERY

app = command_group("List outgoing mail; settle mail whose fate is unknown; simulate the queue.")

COLUMNS = ("id", "kind", "state", "recipients", "subject", "attempts", "not_before", "account", "error")

DeliveryId = Annotated[UUID, typer.Argument(metavar="ID", help="The id, as `postroom outbound list` shows it.")]


@app.command("list")
def list_(
    session: Session,
    state: Annotated[str | None, typer.Option("--state", help="Only mail in this state, such as unknown.")] = None,
    limit: Limit = 50,
) -> None:
    """List outgoing mail, newest first."""
    from postroom.manage.outbound import list_mail

    wanted = None if state is None else choice("--state", state, sorted(DELIVERY.states))
    session.show_list(session.call(list_mail, wanted, limit), COLUMNS)


@app.command()
def show(session: Session, delivery_id: DeliveryId) -> None:
    """Show one outgoing message: its state, and why it waits."""
    from postroom.manage.outbound import load_mail

    session.show_one(session.call(load_mail, delivery_id))


@app.command()
def resolve(
    session: Session,
    delivery_id: DeliveryId,
    sent: Annotated[bool, typer.Option("--sent", help="It was sent: its action is completed.")] = False,
    not_sent: Annotated[bool, typer.Option("--not-sent", help="It was not sent: it is sent now.")] = False,
) -> None:
    """Say what happened to a mail whose state is unknown, after you have checked the mailbox."""
    if sent == not_sent:
        raise BadInput("--sent", "is missing, or combined with --not-sent", "give --sent, or --not-sent to send it now")
    from postroom.manage.outbound import resolve_mail

    outcome = "sent" if sent else "not_sent"
    state = session.call(resolve_mail, delivery_id, outcome, operator_signature())
    session.show_result(delivery_id, state)


@app.command()
def retry(session: Session, delivery_id: DeliveryId) -> None:
    """Send a mail now that waits for its next attempt."""
    from postroom.manage.outbound import send_mail_now

    session.call(send_mail_now, delivery_id, operator_signature())
    session.show_result(delivery_id, "due")


@app.command()
def cancel(session: Session, delivery_id: DeliveryId, reason: Reason = None) -> None:
    """Cancel a mail that has not left yet. Its action ends as canceled.

    One that is `stopping` is canceled by the next sender, unless the mailbox shows that it was already sent.
    """
    from postroom.manage.outbound import cancel_mail

    state = session.call(cancel_mail, delivery_id, operator_signature(reason))
    session.show_result(delivery_id, state)


outbound_simulate.add_to(app)
