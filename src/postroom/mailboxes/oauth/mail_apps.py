"""The owner's own apps at providers whose mail servers accept access tokens, and what each asks consent for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import urlsplit

from postroom.core.mail.servers import AppName
from postroom.mailboxes.oauth.consent import App, Authority, ConsentRequest, begin_consent
from postroom.mailboxes.oauth.errors import AppRefused

GOOGLE_SCOPES = ("https://mail.google.com/",)
# Both servers of Microsoft take tokens of this one resource; the last scope is for a refresh token.
MICROSOFT_SCOPES = (
    "https://outlook.office.com/IMAP.AccessAsUser.All",
    "https://outlook.office.com/SMTP.Send",
    "offline_access",
)
# Google's errors when the program itself, not the user, is at fault, with the remedies.
GOOGLE_REMEDIES = {
    "invalid_client": "check google.client_id and google.client_secret against the app in the Google Cloud console",
    "deleted_client": "the app was deleted in the Google Cloud console: make a new one, and connect the account again",
    "unauthorized_client": "the consent belongs to another app than google.client_id: connect the account again",
    "redirect_uri_mismatch": "set the app's type to Desktop app in the Google Cloud console",
    "invalid_scope": "add the Gmail API to the project in the Google Cloud console",
    "org_internal": "the app is for its own organisation only: make it External, or use an account of it",
    "admin_policy_enforced": "ask the administrator of the domain to trust the app",
}
# Google shows its page even if the user agreed before, and so gives a refresh token.
GOOGLE_OFFLINE: Mapping[str, str] = {"access_type": "offline", "prompt": "consent"}
_MICROSOFT_REMEDIES = {
    "invalid_client": "check microsoft.client_id and microsoft.client_secret against the app in Microsoft Entra; an "
    "app for mobile and desktop has no secret",
    "unauthorized_client": "the app in Microsoft Entra must allow the kind of this account, and microsoft.tenant too",
    "invalid_request": "add http://localhost as redirect address for mobile and desktop to the app in Microsoft Entra",
    "invalid_scope": "the app in Microsoft Entra must be allowed IMAP.AccessAsUser.All and SMTP.Send",
    "invalid_resource": "the organisation has no Exchange Online, where this mailbox would be",
}
_NEED_CONSENT = frozenset({"deleted_client", "unauthorized_client"})


@dataclass(frozen=True)
class MailApp:
    """An app, the scopes that its provider's mail servers want, and the provider's own parameters."""

    name: AppName
    app: App
    scopes: tuple[str, ...]
    further: Mapping[str, str] = field(default_factory=dict[str, str])
    redirects_to_localhost: bool = False

    @property
    def provider(self) -> str:
        return self.app.authority.name

    def begin(self, redirect_uri: str, email: str) -> ConsentRequest:
        """Request consent for the mailbox of this address."""
        if self.redirects_to_localhost:
            redirect_uri = f"http://localhost:{urlsplit(redirect_uri).port}"
        return begin_consent(self.app, redirect_uri, self.scopes, email, self.further)


def google_mail_app(client_id: str, client_secret: str, auth_url: str, token_url: str) -> MailApp:
    app = App(_authority("Google", GOOGLE_REMEDIES), client_id, client_secret, auth_url, token_url)
    return MailApp("google", app, GOOGLE_SCOPES, GOOGLE_OFFLINE)


def microsoft_mail_app(client_id: str, client_secret: str | None, base_url: str, tenant: str) -> MailApp:
    """Of the addresses on this machine, Microsoft takes localhost with any port, and no path."""
    root = f"{base_url.rstrip('/')}/{tenant}/oauth2/v2.0"
    # Microsoft's words for a consent that only the user can renew.
    ended = frozenset({"invalid_grant", "interaction_required", "consent_required", "login_required"})
    authority = _authority("Microsoft", _MICROSOFT_REMEDIES, ended)
    app = App(authority, client_id, client_secret, f"{root}/authorize", f"{root}/token")
    return MailApp("microsoft", app, MICROSOFT_SCOPES, {"response_mode": "query"}, redirects_to_localhost=True)


def _authority(
    name: str, remedies: Mapping[str, str], ended: frozenset[str] = frozenset({"invalid_grant"})
) -> Authority:
    return Authority(name, frozenset(remedies), partial(_app_refused, name, remedies), ended=ended)


def _app_refused(name: str, remedies: Mapping[str, str], reason: str) -> AppRefused:
    text = f"{name} does not accept the app ({reason}); {remedies[reason]}"
    return AppRefused(text, needs_consent=reason in _NEED_CONSENT)
