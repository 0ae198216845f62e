"""The tokens of connectors, pages and agents: create, list and revoke them."""

from datetime import datetime
from uuid import UUID

from postroom.core.errors import BadInput
from postroom.manage.database import prepare
from postroom.store import tokens
from postroom.store.audit import Signature
from postroom.store.engine.clock import Clock, wall_clock
from postroom.store.engine.database import Database
from postroom.store.tokens import NewToken, Token, mint

__all__ = ["create_token", "list_tokens", "mint", "revoke_token"]


async def create_token(database: Database, token: NewToken, signed: Signature, now: datetime) -> Token:
    """Store a token made by `mint`; only a hash of its secret is kept. Raise BadInput if it is over already."""
    if token.expires_at is not None and token.expires_at <= now:
        raise BadInput("expires_at", "is in the past", "give a later time, or none")
    await prepare(database)
    return await database.run(tokens.create_token(token, signed, now))


async def list_tokens(database: Database) -> list[Token]:
    """List all tokens, newest first, without their secrets."""
    return await database.run(tokens.list_tokens())


async def revoke_token(database: Database, id: UUID, signed: Signature, clock: Clock = wall_clock) -> bool:
    """Revoke a token for good. Return False if it was already revoked."""
    return await database.run(tokens.revoke_token(id, signed, clock()))
