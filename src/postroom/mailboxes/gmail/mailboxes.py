"""The Gmail mailboxes of all accounts: one client for each, which shares its quota with the account's connector."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from postroom.core.errors import Retryable
from postroom.mailboxes.gmail.carrier import GmailCarrier
from postroom.mailboxes.gmail.client import GmailClient
from postroom.mailboxes.gmail.credentials import JobTokens
from postroom.mailboxes.gmail.facts import NAME
from postroom.mailboxes.gmail.from_settings import quota_terms
from postroom.mailboxes.gmail.mailbox import GmailMailbox
from postroom.mailboxes.gmail.quota import Quota
from postroom.mailboxes.gmail.tokens import PlainTokens, TokenProvider

if TYPE_CHECKING:
    from postroom.core.actions.permits import Permit
    from postroom.core.tally import Tally
    from postroom.mailboxes.providers import ProviderParts
    from postroom.sources.mcp_switchboard import McpSwitchboard
    from postroom.store.accounts.accounts import AccountView

SETTINGS_MAY_COME = timedelta(minutes=15)


class GmailProvider:
    """Access by the account's consent, or, for the sandbox, by a token in the settings."""

    def __init__(self, parts: ProviderParts) -> None:
        self._settings = parts.settings
        self._http = parts.http
        self._credentials = parts.tokens
        self._gate = parts.gate
        self._terms = quota_terms(parts.settings)
        self._quotas: dict[UUID, Quota] = {}
        self._clients: dict[UUID, GmailClient] = {}
        self._mailboxes: dict[UUID, GmailMailbox] = {}
        self._backfill_polls: dict[str, float] = {}

    async def mailbox(self, account_id: UUID) -> GmailMailbox:
        """Return one mailbox for all jobs of the account, so that their calls can share requests."""
        if account_id not in self._mailboxes:
            self._mailboxes[account_id] = GmailMailbox(self._client(account_id))
        return self._mailboxes[account_id]

    async def mailbox_under(self, permit: Permit) -> GmailMailbox:
        return (await self.mailbox(permit.account_id)).under(permit)

    async def source(self, account_id: UUID) -> GmailClient:
        return self._client(account_id)

    async def sent_mail(self, account_id: UUID) -> GmailCarrier:
        return GmailCarrier(self._client(account_id))

    async def carrier(self, permit: Permit) -> GmailCarrier:
        return GmailCarrier(self._client(permit.account_id).under(permit))

    def is_reachable(self, account: AccountView) -> bool:
        """With a token in the settings, only the account that it is for, which has no consent."""
        if self._settings.gmail.token is not None:
            return account.email == self._settings.account.email
        return account.consent is not None

    async def watch(self, account: AccountView, switchboard: McpSwitchboard, tally: Tally) -> None:
        from postroom.mailboxes.following.running import watch_within
        from postroom.mailboxes.gmail.watching import connector_parts, more_chores

        settings, quota = self._settings, self._quota(account.id)
        await watch_within(
            settings,
            switchboard,
            NAME,
            account.email,
            lambda home: connector_parts(home, self._http, quota),
            settings.gmail.poll_s,
            tally=tally,
            polls=self._backfill_polls,
            acts_from=account.acts_from,
            more=lambda parts: more_chores(settings, parts),
        )

    async def aclose(self) -> None:
        """Nothing stays open: the HTTP client is not ours."""

    def _client(self, account_id: UUID) -> GmailClient:
        """Return a client that only reads, until `under` gives it a permit."""
        if account_id not in self._clients:
            base_url, quota = self._settings.gmail.base_url, self._quota(account_id)
            tokens = self._tokens(account_id)
            self._clients[account_id] = GmailClient(self._http, base_url, tokens, quota=quota, gate=self._gate)
        return self._clients[account_id]

    def _quota(self, account_id: UUID) -> Quota:
        return self._quotas.setdefault(account_id, Quota(self._terms))

    def _tokens(self, account_id: UUID) -> TokenProvider:
        given = self._settings.gmail.token
        if given is not None:
            return PlainTokens(_always(given.get_secret_value()))
        if self._credentials is None:
            raise Retryable("google.client_id and google.client_secret are not set", SETTINGS_MAY_COME)
        return JobTokens(self._credentials, account_id)


def _always(value: str) -> Callable[[], Coroutine[Any, Any, str]]:
    async def token() -> str:
        return value

    return token
