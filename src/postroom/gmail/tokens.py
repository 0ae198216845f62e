"""Access tokens for Gmail: fetched when needed, shared by concurrent callers, replaced when Gmail refuses one."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol, runtime_checkable

from postroom.gmail.errors import ConsentLost, GmailError
from postroom.gmail.scopes import Consented

# Google's tokens are valid for an hour. One that expires within this time is replaced early.
EARLY = timedelta(minutes=5)


class TokenProvider(Protocol):
    """Provides the access tokens of one mailbox."""

    async def token(self) -> str:
        """A token that should be valid. Raises ConsentLost, or TokenUnavailable if there is none for now."""
        ...

    def refused(self, token: str) -> None:
        """Discard this token, since Gmail did not accept it."""
        ...


@runtime_checkable
class KnowsConsent(Protocol):
    """A provider that knows what its tokens allow."""

    def consented(self) -> Consented | None:
        """The account and the granted scopes of the last token; None if unknown."""
        ...


Token = Callable[[], Awaitable[str]]


@dataclass(frozen=True)
class AccessToken:
    value: str = field(repr=False)
    expires_at: datetime
    consented: Consented | None = None


class Tokens:
    """Caches the current token of one mailbox, and fetches the next one once, however many callers wait for it.

    `fetch` gets the token that Gmail refused, if any: the provider may have cached it too.
    """

    def __init__(
        self,
        fetch: Callable[[str | None], Awaitable[AccessToken]],
        clock: Callable[[], datetime],
        early: timedelta = EARLY,
    ) -> None:
        self._fetch = fetch
        self._clock = clock
        self._early = early
        self._current: AccessToken | None = None
        self._refused: str | None = None
        self._consented: Consented | None = None
        self._fetching: asyncio.Task[AccessToken] | None = None

    async def token(self) -> str:
        current = self._current
        if current is not None and self._clock() < current.expires_at - self._early:
            return current.value
        try:
            return (await self._next()).value
        except ConsentLost:
            raise
        except GmailError:
            # Replaced early, so that a short failure of the token endpoint has no effect.
            if current is not None and current is self._current and self._clock() < current.expires_at:
                return current.value
            raise

    def refused(self, token: str) -> None:
        """Does nothing for a token that was already replaced: it was refused to many calls at once."""
        if self._current is not None and self._current.value == token:
            self._current = None
            self._refused = token

    def consented(self) -> Consented | None:
        return self._consented

    async def _next(self) -> AccessToken:
        """The current fetch, or a new one. It is not canceled together with one of its waiting callers."""
        if self._fetching is None:
            self._fetching = asyncio.ensure_future(self._fetched())
            self._fetching.add_done_callback(_seen)
        return await asyncio.shield(self._fetching)

    async def _fetched(self) -> AccessToken:
        try:
            self._current = await self._fetch(self._refused)
            self._refused = None
            self._consented = self._current.consented
            return self._current
        finally:
            self._fetching = None


class PlainTokens:
    """A token from a function that ignores refusals, such as a setting."""

    def __init__(self, give: Token) -> None:
        self._give = give

    async def token(self) -> str:
        return await self._give()

    def refused(self, token: str) -> None:
        pass


def _seen(task: asyncio.Task[AccessToken]) -> None:
    """Mark the error as seen: waiting callers got it, and asyncio should not report it if none are left."""
    if not task.cancelled():
        task.exception()
