"""The user's own Google app, Google's quota and the key that pulls hints, from the settings."""

from typing import TYPE_CHECKING

from postroom.core.errors import BadInput, SettingsError

if TYPE_CHECKING:
    from postroom.mailboxes.gmail.oauth import GoogleApp
    from postroom.mailboxes.gmail.service_account import ServiceAccountKeyFile
    from postroom.mailboxes.gmail.terms import Terms
    from postroom.settings.reading import Settings


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


def quota_terms(settings: "Settings") -> "Terms":
    """Return Google's quota for one user, from the settings."""
    from postroom.mailboxes.gmail.terms import PRICES, Terms

    gmail = settings.gmail
    try:
        return Terms(gmail.units_per_minute, gmail.reserve_units, {**PRICES, **gmail.prices})
    except BadInput as error:
        setting = {"reserve": "reserve_units"}.get(error.field, error.field)
        raise SettingsError(f"gmail.{setting}: {error.problem}; {error.remedy}") from None


def pubsub_key_file(settings: "Settings") -> "ServiceAccountKeyFile | None":
    """Return the key file of the service account that pulls hints, if there is one."""
    from postroom.mailboxes.gmail.service_account import ServiceAccountKeyFile

    path = settings.gmail.pubsub_key_file
    return None if path is None else ServiceAccountKeyFile(path, "gmail.pubsub_key_file", (settings.google.token_url,))
