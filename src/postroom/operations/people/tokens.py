"""The tokens of connectors, pages and agents: create, list and revoke them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from operator import attrgetter
from typing import Annotated, Any, Literal
from uuid import UUID

from postroom.core.access import OWN, OWN_AGAIN, READ
from postroom.core.errors import BadInput, NotFound
from postroom.core.roles import Role
from postroom.core.short_ids import PartOfId, part_of_id, short_id
from postroom.core.suggestions import did_you_mean
from postroom.operations.accounts.accounts import find_account
from postroom.operations.caller import Caller
from postroom.operations.installation.database import prepare
from postroom.operations.nouns import SETTINGS
from postroom.operations.operation import Argument, command, flow, form, get, post
from postroom.operations.outbound.senders import load_sender
from postroom.operations.short_ids import found_by_id
from postroom.store.actions.token_work import actor_of
from postroom.store.engine.database import Database
from postroom.store.people import tokens
from postroom.store.people.tokens import RevokedToken, Token, mint

TokenRole = Literal["connector", "dashboard", "agent", "admin", "sender", "metrics"]
MODEL = "model"
"""The name of the model among those who ask for actions."""
MAKE_THERE = "make tokens of senders with `postroom token create --role sender --sender USERNAME`"
KEEP_IT = "Keep it safe: it will not be shown again. `postroom token revoke` ends it."


@dataclass(frozen=True, slots=True)
class NewTokenAnswer:
    """`text` is the token itself. It is shown once and stored nowhere."""

    token: Token
    text: str

    @property
    def row(self) -> Mapping[str, object]:
        return {"token": self.text, **asdict(self.token)}


@SETTINGS.operation(
    OWN_AGAIN,
    post("/settings/tokens", status=201),
    flow("/settings/tokens"),
    command("token create", line="{token}", row=attrgetter("row"), notes=lambda _answer: [KEEP_IT]),
)
async def make_token(
    by: Caller,
    /,
    role: Annotated[TokenRole, Argument("What it may do.")],
    identity: Annotated[
        str | None, Argument("The endpoint identity that a connector's token is bound to; for connectors only.")
    ] = None,
    channel: Annotated[
        Sequence[str], Argument("A channel that a connector may deliver; repeatable. Default: those of its identity.")
    ] = (),
    account: Annotated[
        str | None,
        Argument("The only account whose mail an agent sees; default: all.", typed_as="--account ADDRESS"),
    ] = None,
    sender: Annotated[
        str | None,
        Argument("The sender for whom a token of that role submits mail.", typed_as="--sender USERNAME"),
    ] = None,
    name: Annotated[str | None, Argument("A name for the list.")] = None,
    expires_at: Annotated[
        datetime | None,
        Argument("When it expires, by default never.", typed_as="--expires", is_ahead=True),
    ] = None,
) -> NewTokenAnswer:
    """Create a token. It is shown once only: Postroom keeps just a hash of it."""
    now = by.clock()
    if expires_at is not None and expires_at <= now:
        raise BadInput("expires_at", "is in the past", "give a later time, or none")
    if role == "sender" and by.who is not None:
        raise BadInput("role", "sender is for the command line alone", MAKE_THERE)
    account_id = None if account is None else (await find_account(by.database, account)).id
    sender_id = None if sender is None else (await load_sender(by.database, by.clock, sender)).id
    minted = mint(Role(role), identity, name, expires_at, account_id, channel, sender_id)
    await prepare(by.database)
    return NewTokenAnswer(await by.run(tokens.create_token(minted.token, by.signature, now)), minted.text)


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


async def _tokens_of_part(database: Database, part: PartOfId) -> list[UUID]:
    return [each.id for each in await database.run(tokens.list_tokens()) if part.fits(each.id)]


TOKEN = found_by_id("token", "postroom token list", _tokens_of_part)


def _revoked_row(revoked: RevokedToken) -> Mapping[str, object]:
    result = "revoked" if revoked.revoked else "was revoked before"
    return {"id": revoked.id, "result": result, **revoked.work._asdict()}


def _revoked_line(revoked: RevokedToken) -> str:
    words = revoked.work.in_words()
    return f"{short_id(revoked.id)}  {_revoked_row(revoked)['result']}{f'; {words}' if words else ''}"


def _describe_revoked(revoked: RevokedToken, _given: Mapping[str, Any]) -> str:
    words = revoked.work.in_words()
    sentence = "The token is revoked: it opens nothing any more" if revoked.revoked else "It was revoked before"
    return f"{sentence}; {words}." if words else f"{sentence}."


@SETTINGS.operation(
    OWN,
    post("/settings/tokens/{token}/revoke"),
    form("/settings/tokens/{token}/revoke", _describe_revoked),
    command("token revoke {token}", line=_revoked_line, row=_revoked_row),
)
async def revoke_token(
    by: Caller,
    /,
    token: Annotated[UUID, Argument("The id of the token, as `postroom token list` shows it."), TOKEN],
) -> RevokedToken:
    """Revoke a token: within a second it is no longer accepted. What its holder asked for and what is not done yet is
    withdrawn: approvals that wait, and queued actions. Safe to repeat."""
    return await by.run(tokens.revoke_token(token, by.signature, by.clock()))
