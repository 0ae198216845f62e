"""Google's OAuth for its mailboxes: consent to a level, exchange, refresh, revoke. What every provider shares is in
`oauth/`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from postroom.mailboxes.gmail.errors import TESTING_LIFE, ConsentLost, GmailError, GmailTokenUnavailable
from postroom.mailboxes.gmail.scopes import LEVELS, Level
from postroom.mailboxes.oauth import consent, tokens
from postroom.mailboxes.oauth.consent import App, Authority, ConsentRequest
from postroom.mailboxes.oauth.errors import GrantEnded
from postroom.mailboxes.oauth.mail_apps import GOOGLE_OFFLINE, GOOGLE_REMEDIES
from postroom.mailboxes.oauth.tokens import Grant

if TYPE_CHECKING:
    import httpx2

LATE = timedelta(hours=1)


class GoogleConsentRefused(GmailError):
    """There is no consent: the user refused, or the answer does not match the request."""


class GoogleAppRefused(GmailError):
    """Google does not accept the program itself. `reason` is Google's own word.

    With `needs_consent`, its earlier consents stay invalid whatever is fixed.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"Google does not accept the app ({reason}); {GOOGLE_REMEDIES[reason]}")
        self.reason = reason
        self.needs_consent = reason in ("deleted_client", "unauthorized_client")


GOOGLE = Authority("Google", frozenset(GOOGLE_REMEDIES), GoogleAppRefused, GoogleConsentRefused, GmailTokenUnavailable)


@dataclass(frozen=True)
class GoogleApp:
    """The user's own app at Google, and Google's addresses."""

    client_id: str
    client_secret: str = field(repr=False)
    auth_url: str = "https://accounts.google.com/o/oauth2/v2/auth"
    token_url: str = "https://oauth2.googleapis.com/token"  # noqa: S105 - an address
    revoke_url: str = "https://oauth2.googleapis.com/revoke"

    @property
    def general(self) -> App:
        return App(GOOGLE, self.client_id, self.client_secret, self.auth_url, self.token_url)


@dataclass(frozen=True)
class ConsentLife:
    """The facts about a consent: whose it is, since when, and when it was last valid."""

    account: str
    granted_at: datetime
    refreshed_at: datetime | None = None
    dies_at: datetime | None = None

    def ended_in_testing(self, now: datetime) -> bool:
        """Whether it ended because the app is in "Testing": at seven days of age, and never seen valid after that."""
        if self.dies_at is not None:
            return now >= self.dies_at - LATE
        end = self.granted_at + TESTING_LIFE
        return now >= end - LATE and (self.refreshed_at is None or self.refreshed_at <= end + LATE)


def begin_consent(
    app: GoogleApp, redirect_uri: str, level: Level, email: str | None = None, also: Collection[str] = ()
) -> ConsentRequest:
    """Request consent for a level and further scopes."""
    return consent.begin_consent(app.general, redirect_uri, (*LEVELS[level], *also), email, GOOGLE_OFFLINE)


class GoogleOAuth:
    """Google's token endpoints, for one app."""

    def __init__(self, http: httpx2.AsyncClient, app: GoogleApp) -> None:
        self._http = http
        self.app = app

    async def exchange(self, request: ConsentRequest, code: str) -> Grant:
        """Exchange the code for tokens; it is valid once, for ten minutes."""
        return await tokens.exchange(self._http, self.app.general, request, code)

    async def refresh(self, refresh_token: str, life: ConsentLife, now: datetime) -> Grant:
        """A new access token. Raises ConsentLost, GoogleAppRefused, or TokenUnavailable if a retry may help."""
        try:
            return await tokens.refresh(self._http, self.app.general, refresh_token)
        except GrantEnded as ended:
            age = TESTING_LIFE if life.ended_in_testing(now) else None
            raise ConsentLost(life.account, ended.reason, age) from None

    async def revoke(self, token: str) -> bool:
        """Revoke the consent at Google, with all its tokens. False if Google no longer knew it."""
        return await tokens.revoke(self._http, GOOGLE, self.app.revoke_url, token)


async def ask_endpoint(http: httpx2.AsyncClient, url: str, form: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
    """The status and fields of an answer of Google's. Raises GmailTokenUnavailable if there was none."""
    return await tokens.ask_endpoint(http, GOOGLE, url, form)


async def address_of(http: httpx2.AsyncClient, gmail_url: str, access_token: str) -> str:
    """The mailbox that a new access token opens."""
    import httpx2  # only when it is needed: most commands about accounts make no request

    headers = {"Authorization": f"Bearer {access_token}", "Accept-Encoding": "identity"}
    try:
        response = await http.get(f"{gmail_url.rstrip('/')}/gmail/v1/users/me/profile", headers=headers)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        failure = type(error).__name__
    else:
        if response.status_code == 200 and isinstance(
            address := tokens.fields_in(response.content).get("emailAddress"), str
        ):
            return address
        failure = str(response.status_code)
    remedy = "enable the Gmail API for the project in the Google Cloud console" if failure == "403" else "try again"
    raise GoogleConsentRefused(f"Gmail does not say whose mailbox this is ({failure}); {remedy}")


def grant_in(answer: Mapping[str, Any], asked: Collection[str] = ()) -> Grant:
    return tokens.grant_in(GOOGLE, answer, asked)


def refuse(status: int, answer: Mapping[str, Any]) -> NoReturn:
    """Raise the error that a refusal of Google's token endpoint means."""
    tokens.refuse(GOOGLE, status, answer)
