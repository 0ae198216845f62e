"""Outgoing mail: list it, settle it, send it now, or cancel it."""

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from postroom.operations.caller import Caller
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


async def resolve_mail(by: Caller, id: UUID, outcome: Literal["sent", "not_sent"]) -> str:
    """Record what happened to a mail whose state is unknown; return its new state."""
    return await by.run(outbound_answers.resolve_mail(id, outcome, by.signature, by.clock()))


async def send_mail_now(by: Caller, id: UUID) -> None:
    """Make a mail that waits for its next attempt due at once."""
    await by.run(outbound_answers.hasten_mail(id, by.signature, by.clock()))


async def cancel_mail(by: Caller, id: UUID) -> str:
    """Cancel a mail that has not left yet; return its new state."""
    return await by.run(outbound_answers.cancel_mail(id, by.signature, by.clock()))
