"""A provider of mailboxes: all that it can do, declared by `PROVIDER` in the `provider.py` of its folder.

`core/mail/providers.py` has the list of them. Whoever needs a provider asks for it here, by the name that the account
has; nothing else imports one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from postroom.core.backfill.estimate import NO_QUOTA, QuotaPace
from postroom.core.errors import Fatal
from postroom.core.mail.providers import PROVIDERS, ProviderFacts

if TYPE_CHECKING:
    from datetime import datetime, timedelta
    from pathlib import Path
    from uuid import UUID

    import httpx2

    from postroom.core.actions.permits import Permit
    from postroom.core.mail.carrier import Carrier, SentMailbox
    from postroom.core.mail.gate import Gate
    from postroom.core.mail.mailbox import Mailbox
    from postroom.core.tally import Tally
    from postroom.mailboxes.accounts.book import AccountBook
    from postroom.mailboxes.following.source import MailSource
    from postroom.settings.reading import Settings
    from postroom.sources.mcp_switchboard import McpSwitchboard
    from postroom.store.accounts.accounts import AccountView


class MailProvider(Protocol):
    """The mailboxes of one provider: what jobs do in them, how mail leaves them, and the connectors that watch them."""

    async def mailbox(self, account_id: UUID) -> Mailbox:
        """Return the mailbox for reading."""
        ...

    async def mailbox_under(self, permit: Permit) -> Mailbox: ...

    async def source(self, account_id: UUID) -> MailSource:
        """Return the mailbox as a connector reads it."""
        ...

    async def sent_mail(self, account_id: UUID) -> SentMailbox: ...

    async def carrier(self, permit: Permit) -> Carrier: ...

    def is_reachable(self, account: AccountView) -> bool:
        """Tell whether the mailbox can be opened: for example, its owner has given consent."""
        ...

    async def watch(self, account: AccountView, switchboard: McpSwitchboard, tally: Tally) -> None:
        """Run the account's connector until canceled."""
        ...

    async def aclose(self) -> None:
        """Close the connections that are kept for later work."""
        ...


@dataclass(frozen=True, slots=True)
class AccountToken:
    """An access token for one mailbox, and its remaining lifetime."""

    account: AccountView
    value: str = field(repr=False)
    expires_in: timedelta


class AccountTokens(Protocol):
    """The access tokens by the consents of accounts, also for connectors that run alone, which name an endpoint."""

    async def of(self, account_id: UUID) -> AccountToken: ...

    async def at(self, endpoint_identity: str) -> AccountToken: ...

    def refused(self, account_id: UUID, token: str) -> None:
        """Discard this token, since the mailbox did not accept it."""
        ...

    async def refused_at(self, endpoint_identity: str, token: str) -> None: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ProviderParts:
    """The parts that a provider needs to open its mailboxes."""

    settings: Settings
    book: AccountBook
    http: httpx2.AsyncClient
    gate: Gate
    tokens: AccountTokens | None = None
    """Access tokens by the consents of accounts; None if there is no app that consents could be given to."""


def _no_quota(_settings: Settings) -> QuotaPace:
    return NO_QUOTA


class AccessField(NamedTuple):
    """Something that the owner of a mailbox gives to connect it, besides its address. It is stored sealed, under one of
    the names in `core/mail/secret_fields.py`.
    """

    name: str
    label: str


class Spending(NamedTuple):
    """The units of a quota that were spent in the minute before a moment."""

    at: datetime
    units: int


async def _no_sign_in(_settings: Settings, _email: str, _given: Mapping[str, str]) -> Sequence[str]:
    return ()


async def _cannot_end(_settings: Settings, _http: httpx2.AsyncClient, _secret: str) -> bool:
    return False


def _no_tokens(_settings: Settings, _book: AccountBook, _http: httpx2.AsyncClient) -> AccountTokens | None:
    return None


def _no_address(_settings: Settings) -> str | None:
    return None


def _no_spending(_folder: Path) -> Spending | None:
    return None


@dataclass(frozen=True, slots=True)
class Provider:
    facts: ProviderFacts
    open: Callable[[ProviderParts], MailProvider]
    open_tokens: Callable[[Settings, AccountBook, httpx2.AsyncClient], AccountTokens | None] = _no_tokens
    """Open the access tokens by consents; None if the settings name no app that consents could be given to."""
    address_in_settings: Callable[[Settings], str | None] = _no_address
    """The mailbox that the settings alone give access to, as they do for the sandbox."""
    fields: Sequence[AccessField] = ()
    """The fields asked for to connect a mailbox; empty if command and page have a dialog of their own for it."""
    sign_in: Callable[[Settings, str, Mapping[str, str]], Awaitable[Sequence[str]]] = _no_sign_in
    """Try the given fields for the mailbox of an address, before they are stored. Return what its owner should know;
    raise BadInput or MailboxError if the mailbox cannot be opened with them.
    """
    end_consent: Callable[[Settings, httpx2.AsyncClient, str], Awaitable[bool]] = _cannot_end
    """End the consent with this secret, where it was given. False if that failed or cannot be done from here."""
    end_by_hand: str = "The provider was not told."
    """Advice to the owner about a consent that could not be ended."""
    pace: Callable[[Settings], QuotaPace] = _no_quota
    """The quota that live mail leaves to a backfill."""
    spending: Callable[[Path], Spending | None] = _no_spending
    """The quota that the connector with this folder has spent."""


def provider_named(name: str) -> Provider:
    """Load what a provider can do. Raises Fatal for one that is unknown."""
    if name not in PROVIDERS:
        raise Fatal(f"mailboxes of {name} are unknown; known are: {', '.join(PROVIDERS)}")
    return cast("Provider", import_module(f"{PROVIDERS[name]}.provider").PROVIDER)
