"""Gmail through its API, as a provider."""

from __future__ import annotations

from typing import TYPE_CHECKING

from postroom.core.backfill.estimate import QuotaPace
from postroom.mailboxes.gmail.facts import FACTS
from postroom.mailboxes.providers import MailProvider, Provider, ProviderParts

if TYPE_CHECKING:
    from postroom.settings.reading import Settings

_PAGE = 500


def _open(parts: ProviderParts) -> MailProvider:
    from postroom.mailboxes.gmail.mailboxes import GmailProvider

    return GmailProvider(parts)


def _pace(settings: Settings) -> QuotaPace:
    from postroom.mailboxes.gmail.terms import PRICES

    gmail = settings.gmail
    prices = {**PRICES, **gmail.prices}
    units = max(1, gmail.units_per_minute - gmail.reserve_units)
    return QuotaPace(units, prices["messages.get"], prices["messages.list"], _PAGE)


PROVIDER = Provider(FACTS, _open, _pace)
