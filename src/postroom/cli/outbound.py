"""`postroom outbound`: mail on its way out, and what a person has to say about it."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

import typer

from postroom.cli.application import application_of
from postroom.cli.operator import operator_signature
from postroom.cli.options import AsJson, DataDir, command_group, settings_for
from postroom.cli.output import show_json, show_list, show_one
from postroom.cli.running import run_transaction
from postroom.core.errors import BadInput
from postroom.core.lifecycle import DELIVERY

app = command_group("Look at mail on its way out; settle what became of it.")

COLUMNS = ("id", "kind", "state", "recipients", "subject", "attempts", "not_before", "account", "error")

DeliveryId = Annotated[UUID, typer.Argument(metavar="ID", help="The id, as `postroom outbound list` shows it.")]


@app.command("list")
def list_(
    context: typer.Context,
    state: Annotated[str | None, typer.Option("--state", help="Only mail in this state, such as unknown.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="At most so many.")] = 50,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List outgoing mail, the newest first."""
    if state is not None and state not in DELIVERY.states:
        raise BadInput("--state", f"there is no state {state!r}", f"use one of {', '.join(sorted(DELIVERY.states))}")
    from postroom.store.outbound import list_deliveries

    found = run_transaction(application_of(context), settings_for(data_dir), list_deliveries(limit, state))
    show_list([asdict(each) for each in found], COLUMNS, as_json=as_json)


@app.command()
def show(context: typer.Context, delivery_id: DeliveryId, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Show one outgoing mail: where it stands, and why it waits."""
    from postroom.store.outbound import load_delivery

    found = asdict(run_transaction(application_of(context), settings_for(data_dir), load_delivery(delivery_id)))
    show_json(found) if as_json else show_one(found)


@app.command()
def resolve(
    context: typer.Context,
    delivery_id: DeliveryId,
    sent: Annotated[bool, typer.Option("--sent", help="It was sent: its action is completed.")] = False,
    not_sent: Annotated[bool, typer.Option("--not-sent", help="It was not sent: it is sent now.")] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Say what became of a mail whose state is unknown, after you have looked into the mailbox."""
    if sent == not_sent:
        raise BadInput("--sent", "is missing, or stands beside --not-sent", "give --sent, or --not-sent to send it now")
    from postroom.store.outbound_answers import resolve_delivery

    transaction = resolve_delivery(delivery_id, "sent" if sent else "not_sent", operator_signature(), datetime.now(UTC))
    _confirm(delivery_id, run_transaction(application_of(context), settings_for(data_dir), transaction), as_json)


@app.command()
def retry(context: typer.Context, delivery_id: DeliveryId, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Try a mail at once that waits for its next attempt."""
    from postroom.store.outbound_answers import hasten_delivery

    transaction = hasten_delivery(delivery_id, operator_signature(), datetime.now(UTC))
    run_transaction(application_of(context), settings_for(data_dir), transaction)
    _confirm(delivery_id, "due", as_json)


@app.command()
def cancel(
    context: typer.Context,
    delivery_id: DeliveryId,
    reason: Annotated[str | None, typer.Option("--reason", help="Why, for whoever wonders later.")] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Do not send a mail that has not left yet. Its action ends as canceled.

    One that is `stopping` is taken back by the next sender, unless the mailbox shows that it was sent before.
    """
    from postroom.store.outbound_answers import cancel_delivery

    transaction = cancel_delivery(delivery_id, operator_signature(reason), datetime.now(UTC))
    _confirm(delivery_id, run_transaction(application_of(context), settings_for(data_dir), transaction), as_json)


def _confirm(delivery_id: UUID, result: str, as_json: bool) -> None:
    show_json({"id": delivery_id, "result": result}) if as_json else typer.echo(f"{delivery_id}  {result}")
