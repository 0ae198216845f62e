"""Access tokens for mail servers, from the refresh tokens of accounts; those never leave this module but sealed.

The sealed text names the app that the consent was given to: a host does not always tell whose it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

import httpx2

from postroom.core.errors import VaultError
from postroom.core.mail.secret_fields import REFRESH_TOKEN
from postroom.core.mail.servers import AppName
from postroom.mailboxes.oauth.cache import AccessToken, TokenCache
from postroom.mailboxes.oauth.errors import GrantEnded, TokenUnavailable
from postroom.mailboxes.oauth.mail_apps import MailApp
from postroom.mailboxes.oauth.tokens import refresh
from postroom.vault.sealing import Sealed

if TYPE_CHECKING:
    from postroom.mailboxes.accounts.book import AccountBook

MOST_RENEWED = 3
_APPS = ("google", "microsoft")


@dataclass(frozen=True, slots=True)
class HeldConsent:
    """A consent of the owner: the app that has it, and the refresh token."""

    app: AppName
    refresh_token: str = field(repr=False)

    @property
    def text(self) -> str:
        """The text to seal."""
        return f"{self.app}:{self.refresh_token}"

    @classmethod
    def read(cls, text: str) -> HeldConsent:
        name, _, token = text.partition(":")
        if name not in _APPS or not token:
            raise VaultError("the stored consent names no app; connect the account again with --sign-in")
        return cls(name, token)


class MailTokens:
    """The access tokens of all accounts that sign in with one. Each is refreshed once, however many connections wait;
    a consent that was given anew counts at once.
    """

    def __init__(
        self,
        book: AccountBook,
        apps: Callable[[AppName], MailApp],
        http: httpx2.AsyncClient,
    ) -> None:
        self._book = book
        self._apps = apps
        self._http = http
        self._caches: dict[UUID, tuple[datetime, TokenCache[AccessToken]]] = {}
        self._unstored: dict[UUID, tuple[Sealed, HeldConsent]] = {}
        """Refresh tokens that could not be stored when they came, each with the one that it replaces."""

    async def of(self, account_id: UUID, given_at: datetime) -> str:
        """A token by the consent of this time. Raises GrantEnded, AppRefused, TokenUnavailable if a retry may help,
        SettingsError without an app, and the errors of store and vault.
        """
        found = self._caches.get(account_id)
        if found is None or found[0] != given_at:

            async def fetch(_refused: str | None) -> AccessToken:
                return await self._fetch_token(account_id, given_at)

            found = self._caches[account_id] = given_at, TokenCache(fetch, self._book.clock)
        return await found[1].token()

    def refused(self, account_id: UUID, token: str) -> None:
        """Discard this token, since a server did not accept it."""
        if account_id in self._caches:
            self._caches[account_id][1].refused(token)

    async def aclose(self) -> None:
        """Wait for what is being fetched; call it before the database is closed."""
        for _, cache in tuple(self._caches.values()):
            await cache.aclose()

    async def _fetch_token(self, account_id: UUID, given_at: datetime) -> AccessToken:
        for _ in range(MOST_RENEWED):
            account, sealed = await self._book.with_secret(account_id, REFRESH_TOKEN)
            if account.servers is None or account.servers.given_at != given_at or sealed is None:
                break
            before, newer = self._unstored.get(account_id, (None, None))
            if newer is not None and before == sealed:
                await self._replace(account_id, sealed, newer)
                continue
            consent = HeldConsent.read(self._book.open(sealed, account_id, REFRESH_TOKEN))
            asked_at = self._book.clock()
            try:
                grant = await refresh(self._http, self._apps(consent.app).app, consent.refresh_token)
            except GrantEnded:
                again = await self._book.with_secret(account_id, REFRESH_TOKEN)
                if again.sealed == sealed:
                    raise
                # Another process used it first, and has stored the one that replaced it.
                continue
            if grant.refresh_token not in (None, consent.refresh_token):
                await self._replace(account_id, sealed, HeldConsent(consent.app, grant.refresh_token))
            if not (grant.access_token.isascii() and grant.access_token.isprintable()):
                raise TokenUnavailable("it contains characters that no token has")
            return AccessToken(grant.access_token, asked_at + grant.expires_in)
        raise TokenUnavailable("the account was given another consent meanwhile")

    async def _replace(self, account_id: UUID, before: Sealed, consent: HeldConsent) -> None:
        """Store a refresh token that the provider replaced, unless the account has another by now. If it cannot be
        stored, it is kept until it can: the one before may not be valid any more.
        """
        self._unstored[account_id] = before, consent
        await self._book.replace(account_id, REFRESH_TOKEN, before, consent.text)
        del self._unstored[account_id]
