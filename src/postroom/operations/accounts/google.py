"""The user's own Google app and the vault of this installation, from the settings."""

from typing import TYPE_CHECKING

from postroom.core.errors import SettingsError

if TYPE_CHECKING:
    from postroom.mailboxes.gmail.oauth import GoogleApp
    from postroom.settings.reading import Settings
    from postroom.vault.sealing import Vault


def google_app(settings: "Settings") -> "GoogleApp":
    """Return the app. Raise SettingsError if it is not set: there is no app that all users could share."""
    from postroom.mailboxes.gmail.oauth import GoogleApp

    google = settings.google
    if google.client_id is None or google.client_secret is None:
        raise SettingsError(
            "google.client_id and google.client_secret are not set; create your own app at Google, "
            "as docs/how-to/connect-gmail.md shows, and set both"
        )
    secret = google.client_secret.get_secret_value()
    return GoogleApp(google.client_id, secret, google.auth_url, google.token_url, google.revoke_url)


def scopes_beside(settings: "Settings") -> tuple[str, ...]:
    """Return the scopes that a consent needs besides its level: pulling hints, unless a service account does that."""
    from postroom.mailboxes.gmail.scopes import PUBSUB

    gmail = settings.gmail
    return (PUBSUB,) if gmail.pubsub_subscription is not None and gmail.pubsub_key_file is None else ()


def vault_of(settings: "Settings") -> "Vault":
    from postroom.vault.sealing import Vault

    key = settings.secret_key
    return Vault(settings.data_dir, None if key is None else key.get_secret_value())
