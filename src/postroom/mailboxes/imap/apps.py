"""The owner's apps for mail servers that accept access tokens, from the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from postroom.core.errors import SettingsError
from postroom.core.mail.servers import AppName
from postroom.mailboxes.oauth.mail_apps import MailApp, google_mail_app, microsoft_mail_app

if TYPE_CHECKING:
    from postroom.settings.reading import Settings


def mail_app(settings: Settings, name: AppName) -> MailApp:
    """Return the app. Raise SettingsError if it is not set: there is no app that all users could share."""
    google, microsoft = settings.google, settings.microsoft
    if name == "google":
        if google.client_id is None or google.client_secret is None:
            raise SettingsError(
                "google.client_id and google.client_secret are not set; create your own app at Google, "
                "as docs/how-to/imap.md shows, and set both"
            )
        secret = google.client_secret.get_secret_value()
        return google_mail_app(google.client_id, secret, google.auth_url, google.token_url)
    if microsoft.client_id is None:
        raise SettingsError(
            "microsoft.client_id is not set; register your own app at Microsoft, as docs/how-to/imap.md shows, "
            "and set it"
        )
    given = microsoft.client_secret
    secret = None if given is None else given.get_secret_value()
    return microsoft_mail_app(microsoft.client_id, secret, microsoft.base_url, microsoft.tenant)
