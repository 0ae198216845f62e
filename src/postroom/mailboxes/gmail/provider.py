"""Gmail through its API, as a provider."""

from __future__ import annotations

from typing import TYPE_CHECKING

from postroom.core.backfill.estimate import QuotaPace
from postroom.core.errors import SettingsError
from postroom.mailboxes.gmail.facts import FACTS
from postroom.mailboxes.providers import AccountTokens, MailProvider, Provider, ProviderParts, Spending

if TYPE_CHECKING:
    from pathlib import Path

    import httpx2

    from postroom.mailboxes.accounts.book import AccountBook
    from postroom.settings.reading import Settings

_PAGE = 500


def _open(parts: ProviderParts) -> MailProvider:
    from postroom.mailboxes.gmail.mailboxes import GmailProvider

    return GmailProvider(parts)


def _open_tokens(settings: Settings, book: AccountBook, http: httpx2.AsyncClient) -> AccountTokens | None:
    from postroom.mailboxes.gmail.credentials import AccessTokens
    from postroom.mailboxes.gmail.from_settings import google_app
    from postroom.mailboxes.gmail.oauth import GoogleOAuth

    return None if settings.google.client_id is None else AccessTokens(book, GoogleOAuth(http, google_app(settings)))


def _address_in_settings(settings: Settings) -> str | None:
    if settings.gmail.token is None:
        return None
    if settings.account.email is None:
        raise SettingsError("account.email is not set; give the mailbox's address in POSTROOM_ACCOUNT_EMAIL")
    return settings.account.email


def _pace(settings: Settings) -> QuotaPace:
    from postroom.mailboxes.gmail.terms import PRICES

    gmail = settings.gmail
    prices = {**PRICES, **gmail.prices}
    units = max(1, gmail.units_per_minute - gmail.reserve_units)
    return QuotaPace(units, prices["messages.get"], prices["messages.list"], _PAGE)


async def _end_consent(settings: Settings, http: httpx2.AsyncClient, secret: str) -> bool:
    from postroom.mailboxes.gmail.errors import GmailError
    from postroom.mailboxes.gmail.from_settings import google_app
    from postroom.mailboxes.gmail.oauth import GoogleOAuth

    if settings.google.client_id is None or settings.google.client_secret is None:
        return False
    try:
        await GoogleOAuth(http, google_app(settings)).revoke(secret)
    except GmailError:
        return False
    return True


def _spending(folder: Path) -> Spending | None:
    from postroom.mailboxes.gmail.following.spending import noted_spending

    return noted_spending(folder / "quota")


PROVIDER = Provider(
    FACTS,
    _open,
    open_tokens=_open_tokens,
    address_in_settings=_address_in_settings,
    pace=_pace,
    spending=_spending,
    end_consent=_end_consent,
    end_by_hand="Google could not be told: revoke the consent yourself at https://myaccount.google.com/connections",
)
