"""Mail on its way out, as people look at it, and what they say about it."""

from typing import Literal
from uuid import UUID

from postroom.store import outbound, outbound_answers
from postroom.store.audit import Signature
from postroom.store.engine.clock import Clock, wall_clock
from postroom.store.engine.database import Database
from postroom.store.outbound import MailView


async def list_mail(database: Database, state: str | None, limit: int) -> list[MailView]:
    """Outgoing mail, the newest first."""
    return await database.run(outbound.list_mail(limit, state))


async def load_mail(database: Database, id: UUID) -> MailView:
    return await database.run(outbound.load_mail(id))


async def resolve_mail(
    database: Database, id: UUID, outcome: Literal["sent", "not_sent"], signed: Signature, clock: Clock = wall_clock
) -> str:
    """Settles what became of a mail whose state is unknown; returns its state after that."""
    return await database.run(outbound_answers.resolve_mail(id, outcome, signed, clock()))


async def hasten_mail(database: Database, id: UUID, signed: Signature, clock: Clock = wall_clock) -> None:
    """Makes a mail that waits for its next attempt due at once."""
    await database.run(outbound_answers.hasten_mail(id, signed, clock()))


async def cancel_mail(database: Database, id: UUID, signed: Signature, clock: Clock = wall_clock) -> str:
    """Ends a mail that has not left yet; returns its state after that."""
    return await database.run(outbound_answers.cancel_mail(id, signed, clock()))
