"""Google's OAuth for a program on the user's own machine: ask, exchange, refresh, revoke.

    begin_consent ──► the user's browser ──► answer_in(redirected address) ──► exchange ──► Grant
                                                            refresh: a new access token, as long as the consent lives

PKCE (S256) binds the code to this request, `state` binds the answer to it. No error quotes a token, a code or a secret:
of Google's answer only the one-word `error` is kept.
"""

import hashlib
import re
import secrets
from collections.abc import AsyncGenerator, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NoReturn, cast
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import orjson

from postroom.core import base64url
from postroom.gmail.errors import TESTING_LIFE, ConsentLost, GmailError, TokenUnavailable
from postroom.gmail.scopes import LEVELS, Level

LARGEST_ANSWER = 65_536
USUAL_LIFE = timedelta(hours=1)
LONGEST_LIFE = timedelta(days=1)
LATE = timedelta(hours=1)

_WORD = re.compile(r"[a-z_]{1,64}")
# Google's errors when the program itself, not the user, is at fault, with the remedies.
_APP_REMEDIES = {
    "invalid_client": "check google.client_id and google.client_secret against the app in the Google Cloud console",
    "deleted_client": "the app was deleted in the Google Cloud console: make a new one, and connect the account again",
    "unauthorized_client": "the consent belongs to another app than google.client_id: connect the account again",
    "redirect_uri_mismatch": "set the app's type to Desktop app in the Google Cloud console",
    "invalid_scope": "add the Gmail API to the project in the Google Cloud console",
    "org_internal": "the app is for its own organisation only: make it External, or use an account of it",
    "admin_policy_enforced": "ask the administrator of the domain to trust the app",
}


class ConsentRefused(GmailError):
    """There is no consent: the user refused, or the answer does not match the request."""


class AppRefused(GmailError):
    """Google does not accept the program itself. `reason` is Google's own word.

    With `needs_consent`, its earlier consents stay invalid whatever is fixed.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"Google does not accept the app ({reason}); {_APP_REMEDIES[reason]}")
        self.reason = reason
        self.needs_consent = reason in ("deleted_client", "unauthorized_client")


@dataclass(frozen=True)
class GoogleApp:
    """The user's own app at Google, and Google's addresses."""

    client_id: str
    client_secret: str = field(repr=False)
    auth_url: str = "https://accounts.google.com/o/oauth2/v2/auth"
    token_url: str = "https://oauth2.googleapis.com/token"  # noqa: S105 - an address
    revoke_url: str = "https://oauth2.googleapis.com/revoke"


@dataclass(frozen=True)
class ConsentRequest:
    """A request for consent: the address to open, and what the answer must match."""

    url: str = field(repr=False)
    redirect_uri: str
    scopes: tuple[str, ...]
    state: str = field(repr=False)
    verifier: str = field(repr=False)


@dataclass(frozen=True)
class Grant:
    """The issued tokens. `dies_in` is how long the consent itself lasts, if Google error so."""

    access_token: str = field(repr=False)
    expires_in: timedelta
    scopes: frozenset[str]
    refresh_token: str | None = field(default=None, repr=False)
    dies_in: timedelta | None = None


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
    """Request consent for a level and further scopes.

    Google shows its page even if the user agreed before, and so gives a refresh token.
    """
    scopes = (*LEVELS[level], *also)
    state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(64)
    asked = {
        "client_id": app.client_id,
        "redirect_uri": redirect_uri,
        "response_type": "code",
        "scope": " ".join(scopes),
        "state": state,
        "code_challenge": _challenge(verifier),
        "code_challenge_method": "S256",
        "access_type": "offline",
        "prompt": "consent",
    }
    if email is not None:
        asked["login_hint"] = email
    return ConsentRequest(f"{app.auth_url}?{urlencode(asked)}", redirect_uri, scopes, state, verifier)


NOWHERE = "http://127.0.0.1:1/"
"""Where nothing listens: the browser stops at this address and shows it, with the code in it."""


def answer_in(request: ConsentRequest, pasted: str) -> str:
    """The code in the answer: the whole address that Google redirected to, or the code alone.

    A code alone comes without the state; PKCE still binds it to this request.
    """
    text = pasted.strip()
    if "://" not in text and "code=" not in text and "error=" not in text:
        if not text or re.search(r"\s", text):
            raise ConsentRefused("that is not a code; paste the code, or the whole address that the browser ended at")
        return text
    query = parse_qs(urlsplit(text).query if "://" in text else text.lstrip("?"))
    if not secrets.compare_digest(_one(query, "state").encode(), request.state.encode()):
        raise ConsentRefused("the answer belongs to another request; start again, and use the newest address")
    if "error" in query:
        error = _one(query, "error")
        if error in _APP_REMEDIES:
            raise AppRefused(error)
        word = error if _WORD.fullmatch(error) else "error"
        raise ConsentRefused(f"Google gave no consent ({word}); start again, and agree on Google's page")
    if not _one(query, "code"):
        raise ConsentRefused("the answer contains no code; start again")
    return _one(query, "code")


class GoogleOAuth:
    """Google's token endpoints, for one app."""

    def __init__(self, http: httpx2.AsyncClient, app: GoogleApp) -> None:
        self._http = http
        self.app = app

    async def exchange(self, request: ConsentRequest, code: str) -> Grant:
        """Exchange the code for tokens; it is valid once, for ten minutes."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": request.redirect_uri,
            "code_verifier": request.verifier,
        }
        status, answer = await self._post(self.app.token_url, form)
        if answer.get("error") == "invalid_grant":
            raise ConsentRefused(
                "Google does not know the code (invalid_grant): it was used, is too old, or is cut off"
            )
        return grant_in(answer, request.scopes) if status == 200 else refuse(status, answer)

    async def refresh(self, refresh_token: str, life: ConsentLife, now: datetime) -> Grant:
        """A new access token. Raises ConsentLost, AppRefused, or TokenUnavailable if a retry may help."""
        status, answer = await self._post(
            self.app.token_url, {"grant_type": "refresh_token", "refresh_token": refresh_token}
        )
        if answer.get("error") == "invalid_grant":
            age = TESTING_LIFE if life.ended_in_testing(now) else None
            raise ConsentLost(life.account, "invalid_grant", age)
        return grant_in(answer) if status == 200 else refuse(status, answer)

    async def revoke(self, token: str) -> bool:
        """Revoke the consent at Google, with all its tokens. False if Google no longer knew it."""
        status, answer = await self._post(self.app.revoke_url, {"token": token}, with_app=False)
        if status != 200 and answer.get("error") not in ("invalid_token", "invalid_grant"):
            refuse(status, answer)
        return status == 200

    async def _post(self, url: str, form: dict[str, str], with_app: bool = True) -> tuple[int, dict[str, Any]]:
        app = {"client_id": self.app.client_id, "client_secret": self.app.client_secret} if with_app else {}
        return await ask_endpoint(self._http, url, {**form, **app})


async def ask_endpoint(http: httpx2.AsyncClient, url: str, form: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
    """The status and fields of a token endpoint's answer. Raises TokenUnavailable if there was none."""
    # Decompressed, an answer could have any size; so it is requested and accepted only uncompressed.
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    body = bytearray()
    try:
        async with http.stream("POST", url, data=dict(form), headers=headers) as response:
            status = response.status_code
            packed = response.headers.get("content-encoding", "identity") != "identity"
            async for piece in response.aiter_bytes() if not packed else _nothing():
                body += piece
                if len(body) > LARGEST_ANSWER:
                    break
    except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
        # Only the type of the failure, and no cause: a protocol error can quote what was sent.
        failure = type(error).__name__
    else:
        return status, _fields(bytes(body)) if len(body) <= LARGEST_ANSWER else {}
    raise TokenUnavailable(f"no answer from Google's token endpoint ({failure})")


async def address_of(http: httpx2.AsyncClient, gmail_url: str, access_token: str) -> str:
    """The mailbox that a new access token opens."""
    headers = {"Authorization": f"Bearer {access_token}", "Accept-Encoding": "identity"}
    try:
        response = await http.get(f"{gmail_url.rstrip('/')}/gmail/v1/users/me/profile", headers=headers)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        failure = type(error).__name__
    else:
        if response.status_code == 200 and isinstance(address := _fields(response.content).get("emailAddress"), str):
            return address
        failure = str(response.status_code)
    remedy = "enable the Gmail API for the project in the Google Cloud console" if failure == "403" else "try again"
    raise ConsentRefused(f"Gmail does not say whose mailbox this is ({failure}); {remedy}")


def grant_in(answer: Mapping[str, Any], asked: Collection[str] = ()) -> Grant:
    """The issued tokens. If Google does not name the scopes, they are the requested ones."""
    token, refresh_token, scope = answer.get("access_token"), answer.get("refresh_token"), answer.get("scope")
    if not isinstance(token, str) or not token:
        raise TokenUnavailable("Google's answer contains none")
    return Grant(
        token,
        min(_seconds(answer.get("expires_in")) or USUAL_LIFE, LONGEST_LIFE),
        frozenset(scope.split() if isinstance(scope, str) else asked),
        refresh_token if isinstance(refresh_token, str) and refresh_token else None,
        _seconds(answer.get("refresh_token_expires_in")),
    )


def refuse(status: int, answer: Mapping[str, Any]) -> NoReturn:
    """Raise the error that a token endpoint's refusal means."""
    error = str(answer.get("error", ""))
    if error in _APP_REMEDIES:
        raise AppRefused(error)
    word = error if _WORD.fullmatch(error) else "no reason given"
    raise TokenUnavailable(f"Google's token endpoint answered {status} ({word})")


def _seconds(value: object) -> timedelta | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return timedelta(seconds=float(value)) if float(value) >= 0 else None
    except (ValueError, OverflowError):
        return None


def _fields(content: bytes) -> dict[str, Any]:
    try:
        answer: object = orjson.loads(content)
    except orjson.JSONDecodeError:
        return {}
    return cast("dict[str, Any]", answer) if isinstance(answer, dict) else {}


async def _nothing() -> AsyncGenerator[bytes]:
    return
    yield b""


def _one(query: dict[str, list[str]], name: str) -> str:
    return query.get(name, [""])[0]


def _challenge(verifier: str) -> str:
    return base64url.encode(hashlib.sha256(verifier.encode()).digest())
