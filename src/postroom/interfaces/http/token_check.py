"""Authenticates tokens, thousands of times a second; a revoked token is refused within a second.

A token's row is cached for a second, so that a burst of requests costs one read; expiry is checked every time.
Concurrent cache misses share one read. Unknown tokens are not cached: however many are tried, they take no memory.
Secrets are compared by their hashes, in constant time, and no message repeats them.
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
from postroom.store.engine.database import Database
from postroom.store.people.tokens import NOTE_EVERY, KeptToken, Token, find_token, note_token_use, read_token
from postroom.system.wall_clock import Clock, wall_clock

T = TypeVar("T")
Reason = Literal["no_token", "bad_token", "expired", "revoked"]
MOST_KEPT = 1024

log = structlog.get_logger()


class TokenRefused(Refused):
    """The token is missing, unknown, expired or revoked. `reason` is used in answers and counters."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason: Reason = reason


@dataclass(slots=True)
class _Known:
    """A cached token, and when it was read."""

    kept: KeptToken
    read_at: datetime


class TokenCheck:
    """Finds the principal of a token."""

    def __init__(self, database: Database, clock: Clock = wall_clock, keep: timedelta = timedelta(seconds=1)) -> None:
        self._database = database
        self._clock = clock
        self._keep = keep
        self._known: dict[UUID, _Known] = {}
        self._reading: dict[UUID, asyncio.Task[KeptToken | None]] = {}
        self._noted: dict[UUID, datetime] = {}
        self._noting: set[asyncio.Task[None]] = set()

    async def check(self, text: str | None) -> Principal:
        """The principal of this token. Raises TokenRefused, or a StoreError if the database fails."""
        if not text:
            raise _no_token()
        claimed = read_token(text)
        kept = await self._find(claimed.id) if claimed is not None else None
        if claimed is None or kept is None or not hmac.compare_digest(kept.secret_sha256, claimed.secret_sha256):
            raise _bad_token()
        token, now = kept.token, self._clock()
        if reason := _end_of(token, now):
            raise _refusal(reason, token)
        self._note_use(token, now)
        channels = None if token.channels is None else frozenset(token.channels)
        return Principal(token.role, token.identity, token.id, token.account_id, channels, token.sender_id)

    async def until_ended(self, id: UUID) -> None:
        """Return when this token is no longer accepted, for answers that wait."""
        while True:
            await asyncio.sleep(self._keep.total_seconds())
            try:
                kept = await self._read_together(id)
            except PostroomError as error:
                log.warning("token.not_read", id=id, error=type(error).__name__)
            else:
                if kept is None or _end_of(kept.token, self._clock()):
                    return

    async def close(self) -> None:
        """Wait for pending writes; call it before the database is closed."""
        await asyncio.gather(*self._noting)

    async def _find(self, id: UUID) -> KeptToken | None:
        known = self._known.get(id)
        if known is not None and timedelta(0) <= self._clock() - known.read_at < self._keep:
            return known.kept
        return await self._read_together(id)

    async def _read_together(self, id: UUID) -> KeptToken | None:
        reading = self._reading.get(id)
        if reading is None:
            reading = self._reading[id] = asyncio.create_task(self._read(id), name="postroom-token")
            reading.add_done_callback(_retrieve_exception)
        return await asyncio.shield(reading)  # one canceled caller must not cancel the others

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
        """Record that the token was used, if that is due. The request does not wait for it."""
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


def _retrieve_exception(task: asyncio.Task[T]) -> None:
    """Mark the task's error as retrieved, in case all callers were canceled; else asyncio would log it."""
    if not task.cancelled():
        task.exception()


def _no_token() -> TokenRefused:
    return TokenRefused(
        "no_token",
        "a token is needed; create one with `postroom token create --role ROLE` "
        "and send it in the header Authorization, after the word Bearer",
    )


def _bad_token() -> TokenRefused:
    return TokenRefused("bad_token", "this token is unknown; create a new one with `postroom token create --role ROLE`")


def _end_of(token: Token, now: datetime) -> Literal["expired", "revoked"] | None:
    if token.revoked_at is not None:
        return "revoked"
    return "expired" if token.expires_at is not None and token.expires_at <= now else None


def _refusal(reason: Literal["expired", "revoked"], token: Token) -> TokenRefused:
    ended_at = token.revoked_at if reason == "revoked" else token.expires_at
    bound = f" --identity {token.identity}" if token.identity is not None else ""
    bound += f" --account {token.account_id}" if token.account_id is not None else ""
    bound += " --sender USERNAME" if token.sender_id is not None else ""
    return TokenRefused(
        reason,
        f"the token {token.id} {'was revoked' if reason == 'revoked' else 'expired'} at {ended_at:%Y-%m-%d %H:%M} UTC; "
        f"create a new one with `postroom token create --role {token.role}{bound}`",
    )
