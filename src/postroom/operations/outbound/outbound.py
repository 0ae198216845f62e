"""Outgoing mail: list it, settle it, send it now, or cancel it."""

from dataclasses import dataclass
from typing import Annotated, Literal
from uuid import UUID

from postroom.core.access import OPERATE, READ
from postroom.core.lifecycle import DeliveryState
from postroom.core.views import Done
from postroom.operations.caller import Caller
from postroom.operations.nouns import OUTBOUND
from postroom.operations.operation import Argument, Limit, command, dialogue, form, post
from postroom.operations.short_ids import found_by_id
from postroom.store.engine.database import Database
from postroom.store.outbound import outbound, outbound_answers
from postroom.store.outbound.outbound import MailView
from postroom.store.outbound.outbound_recipients import RecipientResult, list_results

COLUMNS = ("id", "kind", "state", "recipients", "subject", "attempts", "not_before", "account", "error")
RECIPIENT_COLUMNS = ("address", "state", "attempts", "not_before", "enhanced", "bounce_class", "last_reply")
OUTGOING = found_by_id("outgoing mail", "postroom outbound list", "outgoing")
MailId = Annotated[UUID, Argument("The id of the outgoing mail."), OUTGOING]


@OUTBOUND.operation(READ, command("outbound list", *COLUMNS))
async def list_deliveries(
    database: Database,
    /,
    state: Annotated[DeliveryState | None, Argument("Only mail in this state, such as unknown.")] = None,
    limit: Limit = 50,
) -> list[MailView]:
    """List outgoing mail, newest first."""
    return await database.run(outbound.list_mail(limit, state))


@OUTBOUND.operation(READ, command("outbound recipients {mail}", *RECIPIENT_COLUMNS))
async def list_recipients(database: Database, /, mail: MailId) -> list[RecipientResult]:
    """Show what has become of each recipient of a mail."""
    await database.run(outbound.load_mail(mail))
    return await database.run(list_results(mail))


@dataclass(frozen=True, slots=True)
class SettledMail(Done):
    """The result, and the state of the mail after it."""

    state: str


@OUTBOUND.operation(
    OPERATE,
    post("/outbound/mail/{mail}/resolve"),
    form("/outbound/{mail}/resolve"),
    dialogue("outbound resolve"),
    signs=True,
)
async def resolve_mail(by: Caller, /, mail: MailId, outcome: Literal["sent", "not_sent"]) -> SettledMail:
    """Say what happened to a mail whose state is unknown."""
    state = await by.run(outbound_answers.resolve_mail(mail, outcome, by.signature, by.clock()))
    return SettledMail(f"The mail is {state.replace('_', ' ')}.", state)


@OUTBOUND.operation(
    OPERATE,
    post("/outbound/mail/{mail}/send-now"),
    form("/outbound/{mail}/send-now"),
    dialogue("outbound retry"),
    signs=True,
)
async def send_mail_now(by: Caller, /, mail: MailId) -> SettledMail:
    """Make a mail that waits for its next attempt due at once."""
    await by.run(outbound_answers.hasten_mail(mail, by.signature, by.clock()))
    return SettledMail("The mail is due now.", "due")


@OUTBOUND.operation(
    OPERATE,
    post("/outbound/mail/{mail}/cancel"),
    form("/outbound/{mail}/cancel"),
    dialogue("outbound cancel"),
    signs=True,
)
async def cancel_mail(by: Caller, /, mail: MailId) -> SettledMail:
    """Cancel a mail that has not left yet."""
    state = await by.run(outbound_answers.cancel_mail(mail, by.signature, by.clock()))
    done = "The mail is canceled." if state == "canceled" else "The mail is being stopped, if it has not left."
    return SettledMail(done, state)
