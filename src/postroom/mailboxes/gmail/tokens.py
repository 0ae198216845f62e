"""Access tokens for Gmail: fetched when needed, shared by concurrent callers, replaced when Gmail refuses one."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from postroom.mailboxes.gmail.scopes import Consented
from postroom.mailboxes.oauth import cache
from postroom.mailboxes.oauth.cache import TokenCache


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
class GmailAccessToken(cache.AccessToken):
    consented: Consented | None = None


class Tokens(TokenCache[GmailAccessToken]):
    """The current token of one mailbox, and what the last one allowed."""

    _consented: Consented | None = None

    def consented(self) -> Consented | None:
        return self._consented

    def _took(self, token: GmailAccessToken) -> None:
        self._consented = token.consented


class PlainTokens:
    """A token from a function that ignores refusals, such as a setting."""

    def __init__(self, give: Token) -> None:
        self._give = give

    async def token(self) -> str:
        return await self._give()

    def refused(self, token: str) -> None:
        pass
