"""The current access token of one mailbox: fetched when needed, shared by concurrent callers, replaced when refused."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from postroom.core.errors import MailboxError, NeedsPerson

# Most tokens are valid for an hour. One that expires within this time is replaced early.
EARLY = timedelta(minutes=5)
CLOSING_S = 5.0


@dataclass(frozen=True)
class AccessToken:
    value: str = field(repr=False)
    expires_at: datetime


T = TypeVar("T", bound=AccessToken)


class TokenCache(Generic[T]):
    """Caches the current token of one mailbox, and fetches the next one once, however many callers wait for it.

    `fetch` gets the token that the mailbox refused, if any: the provider may have cached it too.
    """

    def __init__(
        self,
        fetch: Callable[[str | None], Awaitable[T]],
        clock: Callable[[], datetime],
        early: timedelta = EARLY,
    ) -> None:
        self._fetch = fetch
        self._clock = clock
        self._early = early
        self._current: T | None = None
        self._refused: str | None = None
        self._fetching: asyncio.Task[T] | None = None

    async def token(self) -> str:
        current = self._current
        if current is not None and self._clock() < current.expires_at - self._early:
            return current.value
        try:
            return (await self._next()).value
        except NeedsPerson:
            raise
        except MailboxError:
            # Replaced early, so that a short failure of the token endpoint has no effect.
            if current is not None and current is self._current and self._clock() < current.expires_at:
                return current.value
            raise

    def refused(self, token: str) -> None:
        """Do nothing for a token that was already replaced: it was refused to many calls at once."""
        if self._current is not None and self._current.value == token:
            self._current = None
            self._refused = token

    async def aclose(self) -> None:
        """Wait for a running fetch, though not for long: a refresh token may come with it, and is stored."""
        if (fetching := self._fetching) is not None:
            await asyncio.wait({fetching}, timeout=CLOSING_S)
            fetching.cancel()
            await asyncio.wait({fetching})

    async def _next(self) -> T:
        """The current fetch, or a new one. It is not canceled together with one of its waiting callers."""
        if self._fetching is None:
            self._fetching = asyncio.ensure_future(self._fetch_current())
            self._fetching.add_done_callback(_mark_seen)
        return await asyncio.shield(self._fetching)

    async def _fetch_current(self) -> T:
        try:
            self._current = await self._fetch(self._refused)
            self._refused = None
            self._took(self._current)
            return self._current
        finally:
            self._fetching = None

    def _took(self, token: T) -> None:
        """Keep more of a new token than its text. Subclasses may."""


def _mark_seen(task: asyncio.Task[T]) -> None:
    """Mark the error as seen: waiting callers got it, and asyncio should not report it if none are left."""
    if not task.cancelled():
        task.exception()
