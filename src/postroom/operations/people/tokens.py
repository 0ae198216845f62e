"""The tokens of connectors, pages and agents: create, list and revoke them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from postroom.core.access import OWN, OWN_AGAIN, READ
from postroom.core.errors import BadInput, NotFound
from postroom.core.roles import Role
from postroom.core.short_ids import part_of_id
from postroom.core.suggestions import did_you_mean
from postroom.operations.caller import Caller
from postroom.operations.installation.database import prepare
from postroom.operations.nouns import SETTINGS
from postroom.operations.operation import Argument, command, get, post
from postroom.store.actions.token_work import actor_of
from postroom.store.engine.database import Database
from postroom.store.people import tokens
from postroom.store.people.tokens import NewToken, RevokedToken, Token, mint

__all__ = [
    "RevokedToken",
    "Token",
    "actors_named",
    "create_token",
    "find_holders",
    "list_tokens",
    "mint",
    "revoke_token",
]

TokenRole = Literal["agent", "dashboard", "connector", "metrics", "admin"]
MODEL = "model"
"""The name of the model among those who ask for actions."""


async def create_token(by: Caller, token: NewToken) -> Token:
    """Store a token made by `mint`; only a hash of its secret is kept. Raise BadInput if it is over already."""
    now = by.clock()
    if token.expires_at is not None and token.expires_at <= now:
        raise BadInput("expires_at", "is in the past", "give a later time, or none")
    await prepare(by.database)
    return await by.run(tokens.create_token(token, by.signature, now))


@dataclass(frozen=True, slots=True)
class NewTokenAnswer:
    """`text` is the token itself. It is shown once and stored nowhere."""

    token: Token
    text: str


@SETTINGS.operation(OWN_AGAIN, post("/settings/tokens", status=201))
async def make_token(
    by: Caller,
    /,
    role: Annotated[TokenRole, Argument("Its role; tokens of senders are made with `postroom token create`.")],
    name: Annotated[str | None, Argument("A name to know it by.")] = None,
    identity: Annotated[str | None, Argument("For a connector: the endpoint that it is bound to.")] = None,
    expires_at: Annotated[datetime | None, Argument("When it ends; null for no end.")] = None,
) -> NewTokenAnswer:
    """Make a token. No token makes tokens: this is for an admin in front of a browser."""
    minted = mint(Role(role), identity, name, expires_at)
    return NewTokenAnswer(await create_token(by, minted.token), minted.text)


@SETTINGS.operation(
    READ,
    get("/settings/tokens"),
    command(
        "token list",
        "id",
        "role",
        "identity",
        "channels",
        "account_id",
        "sender_id",
        "name",
        "created_at",
        "expires_at",
        "revoked_at",
        "last_used_at",
    ),
)
async def list_tokens(database: Database, /) -> list[Token]:
    """List the tokens, newest first, without their secrets."""
    return await database.run(tokens.list_tokens())


async def find_holders(database: Database, name: str) -> list[Token]:
    """Find the tokens with this name, or the one with this id, of which some digits are enough. Revoked ones count.

    Raise BadInput if several ids have these digits, NotFound if there is none.
    """
    known = await database.run(tokens.list_tokens())
    if named := [each for each in known if each.name == name]:
        return named
    part = part_of_id(name)
    found = [] if part is None else [each for each in known if part.fits(each.id)]
    if len(found) > 1:
        raise BadInput("NAME", f"{name!r} is part of {len(found)} ids of tokens", "give more digits")
    if not found:
        remedy = did_you_mean(name, [each.name for each in known if each.name], "`postroom token list` shows all")
        raise NotFound(f"there is no token {name[:200]!r}; {remedy}")
    return found


async def actors_named(database: Database, name: str) -> list[str]:
    """Return who is meant by a name, as actions and the audit log name them: the holders of tokens, or the model."""
    if name == MODEL:
        return [MODEL]
    return [actor_of(each.id) for each in await find_holders(database, name)]


@SETTINGS.operation(OWN, post("/settings/tokens/{token}/revoke"))
async def revoke_token(by: Caller, /, token: Annotated[UUID, Argument("The id of the token.")]) -> RevokedToken:
    """Revoke a token for good, and withdraw what its holder asked for and what is not done. Safe to repeat."""
    return await by.run(tokens.revoke_token(token, by.signature, by.clock()))
