"""Tokens: a role, and a secret of which only the hash is stored.

A token reads `postroom_<id>_<secret>`. The id finds the row, the secret proves it. Reading the database reveals no
secret: 256 random bits cannot be guessed from their SHA-256, so no slow hash is needed.
"""

import hashlib
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Any, NamedTuple
from uuid import UUID

from postroom.core.errors import BadInput, NotFound
from postroom.core.roles import CHANNELS, Role, channels_of
from postroom.core.views import Internal
from postroom.store.actions.token_work import WithdrawnWork, withdrawing
from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.engine.filling import fill
from postroom.store.engine.ids import new_id
from postroom.store.engine.reading import read_row
from postroom.store.people.audit import Signature, auditing

SECRET_BYTES = 32
LONGEST_IDENTITY = 512
LONGEST_NAME = 128
NOTE_EVERY = timedelta(minutes=1)
_TEXT = re.compile(r"postroom_([0-9a-f]{32})_([A-Za-z0-9_-]{43})")


@dataclass(frozen=True, slots=True)
class NewToken:
    """A requested token, without the secret."""

    id: UUID
    role: Role
    secret_sha256: str = field(repr=False)
    identity: str | None = None
    name: str | None = None
    expires_at: datetime | None = None
    account_id: UUID | None = None
    channels: tuple[str, ...] | None = None
    sender_id: int | None = None


@dataclass(frozen=True, slots=True)
class Token:
    """A token as it is shown, without its secret or hash."""

    id: UUID
    role: Role
    identity: str | None
    name: str | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    account_id: UUID | None = None
    channels: tuple[str, ...] | None = None
    sender_id: Internal[int | None] = None


@dataclass(frozen=True, slots=True)
class KeptToken:
    """A token with the hash that proves it."""

    token: Token
    secret_sha256: str = field(repr=False)


class NewTokenText(NamedTuple):
    """A new token, and its text, which is shown once and stored nowhere."""

    token: NewToken
    text: str


class ClaimedToken(NamedTuple):
    """The token that a text claims to be, and the hash of its secret."""

    id: UUID
    secret_sha256: str


def mint(
    role: Role,
    identity: str | None = None,
    name: str | None = None,
    expires_at: datetime | None = None,
    account_id: UUID | None = None,
    channels: Sequence[str] = (),
    sender_id: int | None = None,
) -> NewTokenText:
    """Make a new token with a new secret. A connector is bound to an endpoint identity and to channels, by default
    those of the identity. An agent may be bound to an account, and then sees only its mail. A sender's token is bound
    to one sender.
    """
    if role is Role.CONNECTOR and identity is None:
        remedy = "name the endpoint it serves, such as gmail:user:me@example.com"
        raise BadInput("identity", "is missing, and a connector is bound to one endpoint", remedy)
    if role is not Role.CONNECTOR and identity is not None:
        raise BadInput("identity", f"does not go with the role {role}", "leave it out, or use --role connector")
    if role is not Role.AGENT and account_id is not None:
        raise BadInput("account", f"does not go with the role {role}", "leave it out, or use --role agent")
    if (role is Role.SENDER) != (sender_id is not None):
        problem = (
            "is missing, and a sender's token is bound to one sender" if sender_id is None else "does not go with it"
        )
        remedy = "give the username with --sender, and --role sender"
        raise BadInput("sender", problem, remedy)
    if role is not Role.CONNECTOR and channels:
        raise BadInput("channel", f"does not go with the role {role}", "leave it out, or use --role connector")
    if unknown := sorted(set(channels) - CHANNELS):
        raise BadInput("channel", f"there is no channel {unknown[0]!r}", f"use one of {', '.join(sorted(CHANNELS))}")
    _check_text("identity", identity, LONGEST_IDENTITY)
    _check_text("name", name, LONGEST_NAME)
    id, secret = new_id(), secrets.token_urlsafe(SECRET_BYTES)
    bound = tuple(sorted(set(channels) or channels_of(identity))) if identity is not None else None
    token = NewToken(id, role, _hash(secret), identity, name, expires_at, account_id, bound, sender_id)
    return NewTokenText(token, f"postroom_{id.hex}_{secret}")


def read_token(text: str) -> ClaimedToken | None:
    """Parse a token; None if the text is not one."""
    match = _TEXT.fullmatch(text)
    return ClaimedToken(UUID(match[1]), _hash(match[2])) if match else None


@transaction
def create_token(token: NewToken, signed: Signature, now: datetime) -> Script[Token]:
    """Store the token, with an entry in the audit log."""
    channels = None if token.channels is None else ",".join(token.channels)
    yield fill("insert_token", token, channels=channels, now=now)
    expires = None if token.expires_at is None else token.expires_at.isoformat()
    after = {"role": token.role.value, "identity": token.identity, "name": token.name, "expires_at": expires}
    if token.account_id is not None:
        after["account_id"] = str(token.account_id)
    if token.channels is not None:
        after["channels"] = ",".join(token.channels)
    if token.sender_id is not None:
        after["sender_id"] = str(token.sender_id)
    yield from auditing(signed.under("token.create", "token", str(token.id), after=after), now)
    return Token(
        token.id,
        token.role,
        token.identity,
        token.name,
        now,
        token.expires_at,
        None,
        None,
        token.account_id,
        token.channels,
        token.sender_id,
    )


class RevokedToken(NamedTuple):
    """Whether it was valid until now, and what its holder had asked for that was not done."""

    id: Internal[UUID]
    revoked: Annotated[bool, "False if it was revoked before."]
    withdrawn: Annotated[int, "Actions that waited for approval and do so no longer."]
    canceled: Annotated[int, "Queued actions that are canceled."]
    stopping: Annotated[int, "Actions that had begun: they stop at their next step, or are done by then."]

    @property
    def work(self) -> WithdrawnWork:
        return WithdrawnWork(*self[2:])


@transaction
def revoke_token(id: UUID, signed: Signature, now: datetime) -> Script[RevokedToken]:
    """Revoke the token for good, and withdraw what its holder asked for and what is not done, with an entry in the
    audit log. Repeating it withdraws what is left, if anything is."""
    revoked = bool((yield sql("revoke_token", id, now)))
    rows = list((yield sql("select_token", id)).by_name())
    if not rows:
        raise NotFound(f"there is no token {id}; see `postroom token list`")
    named = f" {rows[0]['name']!r}" if rows[0]["name"] else ""
    work = yield from withdrawing(id, f"the token{named} that asked for it was revoked", signed, now)
    if revoked or any(work):
        before, after = {"revoked_at": None}, {"revoked_at": now.isoformat()}
        counted = {name: count for name, count in work._asdict().items() if count}
        changed = {"before": before, "after": {**after, **counted}} if revoked else {"after": counted}
        yield from auditing(signed.under("token.revoke", "token", str(id), **changed), now)
    return RevokedToken(id, revoked, *work)


@transaction
def note_token_use(id: UUID, now: datetime) -> Script[bool]:
    """Record that the token was used, unless that was recorded within the last minute."""
    return bool((yield sql("note_token_use", id, now, now - NOTE_EVERY)))


@query
def list_tokens() -> Script[list[Token]]:
    """Every token ever created, newest first."""
    rows = yield sql("select_tokens")
    return [read_row(Token, row, channels=_channels(row)) for row in rows.by_name()]


@query
def find_token(id: UUID) -> Script[KeptToken | None]:
    for row in (yield sql("select_token", id)).by_name():
        return read_row(KeptToken, row, token=read_row(Token, row, channels=_channels(row)))
    return None


def _channels(row: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The channels; a connector's token from before channels were stored has those of its identity."""
    identity, kept = row["identity"], row["channels"]
    if identity is None:
        return None
    return tuple(sorted(channels_of(identity))) if kept is None else tuple(kept.split(","))


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _check_text(field: str, text: str | None, longest: int) -> None:
    """Check a name, which is shown and compared: one line, not empty, and nothing invisible."""
    if text is None:
        return
    if not text.strip() or not text.isprintable():
        raise BadInput(field, "is empty, or contains a character that cannot be shown", "write it as one line of text")
    if len(text) > longest:
        raise BadInput(field, f"has {len(text)} characters", f"use at most {longest}")
