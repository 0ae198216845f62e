"""`postroom outbound`: outgoing mail, and the questions about it that only a person can answer."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

import typer

from postroom.core.errors import BadInput
from postroom.core.lifecycle import DELIVERY
from postroom.interfaces.cli.moments import read_moment
from postroom.interfaces.cli.options import Limit, Reason, choice
from postroom.interfaces.cli.outbound_many import (
    Destination,
    OneOrMany,
    Since,
    State,
    Tenant,
    Until,
    Wanted,
    Yes,
    settle_one_or_many,
)
from postroom.interfaces.cli.outbound_output import stats_lines
from postroom.interfaces.cli.output import show_json
from postroom.interfaces.cli.session import Session, command_group
from postroom_simulator.command import simulate

app = command_group("List and settle outgoing mail; see how fairly it is served; simulate the queue.")

COLUMNS = ("id", "kind", "state", "recipients", "subject", "attempts", "not_before", "account", "error")
ATTEMPT_COLUMNS = ("ended_at", "address", "number", "outcome", "times", "host", "tls", "took_s", "reply")
RECIPIENT_COLUMNS = ("address", "state", "attempts", "not_before", "enhanced", "bounce_class", "last_reply")

DeliveryId = Annotated[UUID, typer.Argument(metavar="ID", help="The id, as `postroom outbound list` shows it.")]


@app.command("list")
def list_(
    session: Session,
    state: Annotated[str | None, typer.Option("--state", help="Only mail in this state, such as unknown.")] = None,
    limit: Limit = 50,
) -> None:
    """List outgoing mail, newest first."""
    from postroom.operations.outbound.outbound import list_mail

    wanted = None if state is None else choice("--state", state, sorted(DELIVERY.states))
    session.show_list(session.call(list_mail, wanted, limit), COLUMNS)


@app.command()
def show(session: Session, delivery_id: DeliveryId) -> None:
    """Show one outgoing message: its state, why it waits, and every attempt at it."""
    from postroom.operations.outbound.outbound import load_mail_with_attempts

    found = session.call(load_mail_with_attempts, delivery_id)
    if session.as_json:
        show_json({**asdict(found.mail), "attempts": [asdict(each) for each in found.attempts]})
        return
    session.show_one(found.mail)
    if found.attempts:
        typer.echo()
        rows = [{**asdict(each), "took_s": round(each.took.total_seconds(), 1)} for each in found.attempts]
        session.show_list(rows, ATTEMPT_COLUMNS)


@app.command()
def recipients(session: Session, delivery_id: DeliveryId) -> None:
    """Show what has become of each recipient of a mail."""
    from postroom.operations.outbound.outbound import list_recipients

    session.show_list(session.call(list_recipients, delivery_id), RECIPIENT_COLUMNS)


@app.command()
def report(
    session: Session,
    file: Annotated[typer.FileBinaryRead, typer.Argument(metavar="FILE", help="A whole message; - reads stdin.")],
) -> None:
    """Take a delivery report or a complaint about mail that was sent."""
    from postroom.operations.outbound.reports import take_report

    concerned = session.call(take_report, file.read(), rule=session.settings.outbound.strike_rule)
    session.show_line({"recipients": concerned}, f"recipients concerned: {concerned}")


@app.command()
def resolve(
    session: Session,
    delivery_id: OneOrMany = None,
    sent: Annotated[bool, typer.Option("--sent", help="It was sent: its action is completed.")] = False,
    not_sent: Annotated[bool, typer.Option("--not-sent", help="It was not sent: it is sent now.")] = False,
    tenant: Tenant = None,
    destination: Destination = None,
    since: Since = None,
    until: Until = None,
    yes: Yes = False,
) -> None:
    """Say what happened to mail whose state is unknown, after you have checked: one by its id, or many by a filter."""
    if sent == not_sent:
        raise BadInput("--sent", "is missing, or combined with --not-sent", "give --sent, or --not-sent to send it now")
    from postroom.operations.outbound.outbound import resolve_mail

    outcome = "sent" if sent else "not_sent"
    wanted = Wanted(tenant, destination, None, since, until)

    def resolve_one(id: UUID) -> str:
        return session.act(resolve_mail, id, outcome).state

    settle_one_or_many(session, delivery_id, wanted, outcome, resolve_one, yes)


@app.command()
def retry(
    session: Session,
    delivery_id: OneOrMany = None,
    tenant: Tenant = None,
    destination: Destination = None,
    state: State = None,
    since: Since = None,
    until: Until = None,
    yes: Yes = False,
) -> None:
    """Send mail now that waits for its next attempt: one by its id, or many by a filter."""
    from postroom.operations.outbound.outbound import send_mail_now

    def send_one(id: UUID) -> str:
        return session.act(send_mail_now, id).state

    wanted = Wanted(tenant, destination, state, since, until)
    settle_one_or_many(session, delivery_id, wanted, "retry", send_one, yes)


@app.command()
def cancel(
    session: Session,
    delivery_id: OneOrMany = None,
    tenant: Tenant = None,
    destination: Destination = None,
    state: State = None,
    since: Since = None,
    until: Until = None,
    yes: Yes = False,
    reason: Reason = None,
) -> None:
    """Cancel mail that has not left yet, one by its id or many by a filter. Its action ends as canceled.

    Mail that is `stopping` is canceled by the next sender, unless the mailbox shows that it was already sent.
    """
    from postroom.operations.outbound.outbound import cancel_mail

    def cancel_one(id: UUID) -> str:
        return session.because(reason).act(cancel_mail, id).state

    wanted = Wanted(tenant, destination, state, since, until)
    settle_one_or_many(session, delivery_id, wanted, "cancel", cancel_one, yes, reason)


@app.command()
def stats(
    session: Session,
    since: Annotated[
        str, typer.Option("--since", metavar="WHEN", help="From the hour of this time on: 24h, 7d, or a time.")
    ] = "24h",
) -> None:
    """Show how evenly tenants, domains and senders were served, how long mail waited, and the health of the queue."""
    from postroom.operations.outbound.outbound_stats import outbound_stats

    start = read_moment("--since", since, datetime.now(UTC), ahead=False)
    found = session.call(outbound_stats, session.settings.outbound, start)
    if session.as_json:
        show_json(found)
        return
    for line in stats_lines(found):
        typer.echo(line)


app.command()(simulate)
