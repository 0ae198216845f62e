"""Mailboxes over IMAP, as a provider."""

from __future__ import annotations

from typing import TYPE_CHECKING

from postroom.mailboxes.imap.facts import FACTS
from postroom.mailboxes.providers import MailProvider, Provider, ProviderParts

if TYPE_CHECKING:
    import httpx2

    from postroom.settings.reading import Settings


def _open(parts: ProviderParts) -> MailProvider:
    from postroom.mailboxes.imap.mailboxes import ImapProvider

    return ImapProvider(parts)


async def _end_consent(settings: Settings, http: httpx2.AsyncClient, secret: str) -> bool:
    """Microsoft has no call that ends a single consent; its token is nobody else's business."""
    from postroom.core.errors import PostroomError
    from postroom.mailboxes.imap.apps import mail_app
    from postroom.mailboxes.imap.tokens import HeldConsent
    from postroom.mailboxes.oauth.tokens import revoke

    try:
        consent = HeldConsent.read(secret)
        if consent.app != "google":
            return False
        await revoke(
            http, mail_app(settings, consent.app).app.authority, settings.google.revoke_url, consent.refresh_token
        )
    except PostroomError:
        return False
    return True


PROVIDER = Provider(
    FACTS,
    _open,
    end_consent=_end_consent,
    end_by_hand="The provider was not told: remove the app's consent yourself, at "
    "https://myaccount.google.com/connections or https://account.microsoft.com/privacy/app-access",
)
