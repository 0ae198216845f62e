"""Google's quota and the key that pulls hints, from the settings; and the user's own app and vault."""

from typing import TYPE_CHECKING

from postroom.core.errors import BadInput, SettingsError
from postroom.operations.accounts.google import google_app, scopes_beside, vault_of

if TYPE_CHECKING:
    from postroom.mailboxes.gmail.service_account import KeyFile
    from postroom.mailboxes.gmail.terms import Terms
    from postroom.settings.reading import Settings

__all__ = ["google_app", "pubsub_key_file", "quota_terms", "scopes_beside", "vault_of"]


def quota_terms(settings: "Settings") -> "Terms":
    """Return Google's quota for one user, from the settings."""
    from postroom.mailboxes.gmail.terms import PRICES, Terms

    gmail = settings.gmail
    try:
        return Terms(gmail.units_per_minute, gmail.reserve_units, {**PRICES, **gmail.prices})
    except BadInput as error:
        setting = {"reserve": "reserve_units"}.get(error.field, error.field)
        raise SettingsError(f"gmail.{setting}: {error.problem}; {error.remedy}") from None


def pubsub_key_file(settings: "Settings") -> "KeyFile | None":
    """Return the key file of the service account that pulls hints, if there is one."""
    from postroom.mailboxes.gmail.service_account import KeyFile

    path = settings.gmail.pubsub_key_file
    return None if path is None else KeyFile(path, "gmail.pubsub_key_file", (settings.google.token_url,))
