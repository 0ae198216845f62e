"""`postroom outbound`: outgoing mail, and the questions about it that only a person can answer."""

from typing import Annotated
from uuid import UUID

import typer

from postroom.cli.operator import operator_signature
from postroom.cli.options import AsJson, DataDir, choice, command_group, settings_for
from postroom.cli.output import show_list, show_one, show_result
from postroom.cli.running import call
from postroom.core.errors import BadInput
from postroom.core.lifecycle import DELIVERY

app = command_group("List outgoing mail; settle mail whose fate is unknown.")

COLUMNS = ("id", "kind", "state", "recipients", "subject", "attempts", "not_before", "account", "error")

DeliveryId = Annotated[UUID, typer.Argument(metavar="ID", help="The id, as `postroom outbound list` shows it.")]


@app.command("list")
def list_(
    context: typer.Context,
    state: Annotated[str | None, typer.Option("--state", help="Only mail in this state, such as unknown.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="At most this many.")] = 50,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List outgoing mail, newest first."""
    from postroom.manage.outbound import list_mail

    wanted = None if state is None else choice("--state", state, sorted(DELIVERY.states))
    show_list(call(context, settings_for(data_dir), list_mail, wanted, limit), COLUMNS, as_json=as_json)


@app.command()
def show(context: typer.Context, delivery_id: DeliveryId, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Show one outgoing message: its state, and why it waits."""
    from postroom.manage.outbound import load_mail

    show_one(call(context, settings_for(data_dir), load_mail, delivery_id), as_json=as_json)


@app.command()
def resolve(
    context: typer.Context,
    delivery_id: DeliveryId,
    sent: Annotated[bool, typer.Option("--sent", help="It was sent: its action is completed.")] = False,
    not_sent: Annotated[bool, typer.Option("--not-sent", help="It was not sent: it is sent now.")] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Say what happened to a mail whose state is unknown, after you have checked the mailbox."""
    if sent == not_sent:
        raise BadInput("--sent", "is missing, or combined with --not-sent", "give --sent, or --not-sent to send it now")
    from postroom.manage.outbound import resolve_mail

    outcome = "sent" if sent else "not_sent"
    state = call(context, settings_for(data_dir), resolve_mail, delivery_id, outcome, operator_signature())
    show_result(delivery_id, state, as_json=as_json)


@app.command()
def retry(context: typer.Context, delivery_id: DeliveryId, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Send a mail now that waits for its next attempt."""
    from postroom.manage.outbound import hasten_mail

    call(context, settings_for(data_dir), hasten_mail, delivery_id, operator_signature())
    show_result(delivery_id, "due", as_json=as_json)


@app.command()
def cancel(
    context: typer.Context,
    delivery_id: DeliveryId,
    reason: Annotated[str | None, typer.Option("--reason", help="Why; kept with the record.")] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Cancel a mail that has not left yet. Its action ends as canceled.

    One that is `stopping` is canceled by the next sender, unless the mailbox shows that it was already sent.
    """
    from postroom.manage.outbound import cancel_mail

    state = call(context, settings_for(data_dir), cancel_mail, delivery_id, operator_signature(reason))
    show_result(delivery_id, state, as_json=as_json)
