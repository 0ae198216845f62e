"""Tells from a token who asks, thousands of times a second, and never long after it was revoked.

What was read of a token is kept for a second, so that a burst of requests costs one read; expiry is looked at every
time. Callers that miss together wait for the same read. A token that does not exist is not remembered: however many
are tried, they take no memory. The secret is compared by its hash, in constant time, and no message repeats it.
"""

import asyncio
import hmac
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, TypeVar
from uuid import UUID

import structlog

from postroom.core.errors import PostroomError, Refused
from postroom.core.roles import Principal
from postroom.store.engine.clock import Clock, wall_clock
from postroom.store.engine.database import Database
from postroom.store.tokens import NOTE_EVERY, KeptToken, Token, find_token, note_token_use, read_token

T = TypeVar("T")
Reason = Literal["no_token", "bad_token", "expired", "revoked"]
MOST_KEPT = 1024

log = structlog.get_logger()


class TokenRefused(Refused):
    """The token does not prove who asks. `reason` is for machines: answers and counters."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason: Reason = reason


@dataclass(slots=True)
class _Known:
    """A token as it was read, and when."""

    kept: KeptToken
    read_at: datetime


class TokenCheck:
    """Knows tokens by their text."""

    def __init__(self, database: Database, clock: Clock = wall_clock, keep: timedelta = timedelta(seconds=1)) -> None:
        self._database = database
        self._clock = clock
        self._keep = keep
        self._known: dict[UUID, _Known] = {}
        self._reading: dict[UUID, asyncio.Task[KeptToken | None]] = {}
        self._noted: dict[UUID, datetime] = {}
        self._noting: set[asyncio.Task[None]] = set()

    async def check(self, text: str | None) -> Principal:
        """Whoever holds this token. Raises TokenRefused, or a StoreError when the database cannot be asked."""
        if not text:
            raise _no_token()
        claimed = read_token(text)
        kept = await self._find(claimed.id) if claimed is not None else None
        if claimed is None or kept is None or not hmac.compare_digest(kept.secret_sha256, claimed.secret_sha256):
            raise _bad_token()
        token, now = kept.token, self._clock()
        if token.revoked_at is not None:
            raise _ended("revoked", token)
        if token.expires_at is not None and token.expires_at <= now:
            raise _ended("expired", token)
        self._note_use(token, now)
        channels = None if token.channels is None else frozenset(token.channels)
        return Principal(token.role, token.identity, token.id, token.account_id, channels)

    async def close(self) -> None:
        """Waits for the notes under way; call it before the database is closed."""
        await asyncio.gather(*self._noting)

    async def _find(self, id: UUID) -> KeptToken | None:
        known = self._known.get(id)
        if known is not None and timedelta(0) <= self._clock() - known.read_at < self._keep:
            return known.kept
        reading = self._reading.get(id)
        if reading is None:
            reading = self._reading[id] = asyncio.create_task(self._read(id), name="postroom-token")
            reading.add_done_callback(_look_at)
        return await asyncio.shield(reading)  # one that goes away must not take the others with it

    async def _read(self, id: UUID) -> KeptToken | None:
        read_at = self._clock()
        try:
            kept = await self._database.run(find_token(id))
        finally:
            del self._reading[id]
        self._known.pop(id, None)
        if kept is not None:
            self._known[id] = _Known(kept, read_at)
            self._forget_oldest()
        return kept

    def _forget_oldest(self) -> None:
        while len(self._known) > MOST_KEPT:
            oldest = next(iter(self._known))
            del self._known[oldest]
            self._noted.pop(oldest, None)

    def _note_use(self, token: Token, now: datetime) -> None:
        """Begins to write down that the token was used, when that is due. The request does not wait for it."""
        last = self._noted.get(token.id, token.last_used_at)
        if last is not None and timedelta(0) <= now - last < NOTE_EVERY:
            return
        self._noted[token.id] = now
        noting = asyncio.create_task(self._note(token.id, now), name="postroom-token-use")
        self._noting.add(noting)
        noting.add_done_callback(self._noting.discard)

    async def _note(self, id: UUID, now: datetime) -> None:
        try:
            await self._database.run(note_token_use(id, now))
        except PostroomError as error:
            log.warning("token_use.not_noted", id=id, error=error)


def _look_at(task: asyncio.Task[T]) -> None:
    """An error that everyone who waited has gone away from is nobody's; asyncio would complain of it."""
    if not task.cancelled():
        task.exception()


def _no_token() -> TokenRefused:
    return TokenRefused(
        "no_token",
        "a token is needed; make one with `postroom token create --role ROLE` "
        "and send it in the header Authorization, after the word Bearer",
    )


def _bad_token() -> TokenRefused:
    return TokenRefused(
        "bad_token", "this token is not known here; make a new one with `postroom token create --role ROLE`"
    )


def _ended(reason: Literal["expired", "revoked"], token: Token) -> TokenRefused:
    ended_at = token.revoked_at if reason == "revoked" else token.expires_at
    bound = f" --identity {token.identity}" if token.identity is not None else ""
    bound += f" --account {token.account_id}" if token.account_id is not None else ""
    return TokenRefused(
        reason,
        f"the token {token.id} {'was revoked' if reason == 'revoked' else 'expired'} at {ended_at:%Y-%m-%d %H:%M} UTC; "
        f"make a new one with `postroom token create --role {token.role}{bound}`",
    )
