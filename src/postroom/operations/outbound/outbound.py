"""Outgoing mail: list it, settle it, send it now, or cancel it."""

from dataclasses import dataclass
from typing import Annotated, Literal
from uuid import UUID

from postroom.core.access import OPERATE
from postroom.core.views import Done
from postroom.operations.caller import Caller
from postroom.operations.nouns import OUTBOUND
from postroom.operations.operation import Argument, post
from postroom.store.engine.database import Database
from postroom.store.outbound import outbound, outbound_answers
from postroom.store.outbound.outbound import MailView
from postroom.store.outbound.outbound_attempts import AttemptView, list_attempts
from postroom.store.outbound.outbound_recipients import RecipientResult, list_results


async def list_mail(database: Database, state: str | None, limit: int) -> list[MailView]:
    """List outgoing mail, newest first."""
    return await database.run(outbound.list_mail(limit, state))


async def load_mail(database: Database, id: UUID) -> MailView:
    return await database.run(outbound.load_mail(id))


@dataclass(frozen=True, slots=True)
class MailWithAttempts:
    """One outgoing mail, and every attempt at it."""

    mail: MailView
    attempts: list[AttemptView]


async def load_mail_with_attempts(database: Database, id: UUID) -> MailWithAttempts:
    return MailWithAttempts(await load_mail(database, id), await database.run(list_attempts(id)))


async def list_recipients(database: Database, id: UUID) -> list[RecipientResult]:
    """List what has become of each recipient, in the order of the mail."""
    await database.run(outbound.load_mail(id))
    return await database.run(list_results(id))


@dataclass(frozen=True, slots=True)
class SettledMail(Done):
    """What was done, and the state of the mail after it."""

    state: str


MailId = Annotated[UUID, Argument("The id of the outgoing mail.")]


@OUTBOUND.operation(OPERATE, post("/outbound/mail/{mail}/resolve"), signs=True)
async def resolve_mail(by: Caller, /, mail: MailId, outcome: Literal["sent", "not_sent"]) -> SettledMail:
    """Say what happened to a mail whose state is unknown."""
    state = await by.run(outbound_answers.resolve_mail(mail, outcome, by.signature, by.clock()))
    return SettledMail(f"The mail is {state.replace('_', ' ')}.", state)


@OUTBOUND.operation(OPERATE, post("/outbound/mail/{mail}/send-now"), signs=True)
async def send_mail_now(by: Caller, /, mail: MailId) -> SettledMail:
    """Make a mail that waits for its next attempt due at once."""
    await by.run(outbound_answers.hasten_mail(mail, by.signature, by.clock()))
    return SettledMail("The mail is due now.", "due")


@OUTBOUND.operation(OPERATE, post("/outbound/mail/{mail}/cancel"), signs=True)
async def cancel_mail(by: Caller, /, mail: MailId) -> SettledMail:
    """Cancel a mail that has not left yet."""
    state = await by.run(outbound_answers.cancel_mail(mail, by.signature, by.clock()))
    done = "The mail is canceled." if state == "canceled" else "The mail is being stopped, if it has not left."
    return SettledMail(done, state)
