"""A request for consent and the answer to it.

    begin_consent ──► the user's browser ──► answer_in(redirected address) ──► tokens.exchange ──► Grant

PKCE (S256) binds the code to this request, `state` binds the answer to it. Of the provider's answer only the one-word
`error` is kept.
"""

import hashlib
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlencode, urlsplit

from postroom.core import base64url
from postroom.core.errors import MailboxError
from postroom.mailboxes.oauth.errors import ConsentRefused, TokenUnavailable

WORD = re.compile(r"[a-z_]{1,64}")
NOWHERE = "http://127.0.0.1:1/"
"""Where nothing listens: the browser stops at this address and shows it, with the code in it."""


@dataclass(frozen=True)
class Authority:
    """Who issues tokens: its name, and the errors that its answers become.

    `app_errors` are its words when the program itself is at fault, not the user; `app_refused` makes the error of one.
    `ended` are its words for a consent that is gone.
    """

    name: str
    app_errors: frozenset[str]
    app_refused: Callable[[str], MailboxError]
    consent_refused: Callable[[str], MailboxError] = ConsentRefused
    unavailable: Callable[[str], MailboxError] = TokenUnavailable
    ended: frozenset[str] = frozenset({"invalid_grant"})


@dataclass(frozen=True)
class App:
    """The user's own app at a provider. Without a secret it is a public client, which PKCE alone protects."""

    authority: Authority
    client_id: str
    client_secret: str | None = field(repr=False)
    auth_url: str
    token_url: str

    @property
    def form(self) -> dict[str, str]:
        """How it names itself to the token endpoint."""
        secret = {} if self.client_secret is None else {"client_secret": self.client_secret}
        return {"client_id": self.client_id, **secret}


@dataclass(frozen=True)
class ConsentRequest:
    """A request for consent: the address to open, and what the answer must match."""

    url: str = field(repr=False)
    redirect_uri: str
    scopes: tuple[str, ...]
    state: str = field(repr=False)
    verifier: str = field(repr=False)
    authority: Authority = field(repr=False)


def begin_consent(
    app: App, redirect_uri: str, scopes: tuple[str, ...], email: str | None, further: Mapping[str, str]
) -> ConsentRequest:
    """Request consent to these scopes; `further` are the provider's own parameters."""
    state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(64)
    asked = {
        "client_id": app.client_id,
        "redirect_uri": redirect_uri,
        "response_type": "code",
        "scope": " ".join(scopes),
        "state": state,
        "code_challenge": _challenge(verifier),
        "code_challenge_method": "S256",
        **further,
    }
    if email is not None:
        asked["login_hint"] = email
    return ConsentRequest(f"{app.auth_url}?{urlencode(asked)}", redirect_uri, scopes, state, verifier, app.authority)


def answer_in(request: ConsentRequest, pasted: str) -> str:
    """The code in the answer: the whole address that the provider redirected to, or the code alone.

    A code alone comes without the state; PKCE still binds it to this request.
    """
    authority, text = request.authority, pasted.strip()
    refused = authority.consent_refused
    if "://" not in text and "code=" not in text and "error=" not in text:
        if not text or re.search(r"\s", text):
            raise refused("that is not a code; paste the code, or the whole address that the browser ended at")
        return text
    query = parse_qs(urlsplit(text).query if "://" in text else text.lstrip("?"))
    if not secrets.compare_digest(_one(query, "state").encode(), request.state.encode()):
        raise refused("the answer belongs to another request; start again, and use the newest address")
    if "error" in query:
        error = _one(query, "error")
        if error in authority.app_errors:
            raise authority.app_refused(error)
        word, name = error if WORD.fullmatch(error) else "error", authority.name
        raise refused(f"{name} gave no consent ({word}); start again, and agree on {name}'s page")
    if not _one(query, "code"):
        raise refused("the answer contains no code; start again")
    return _one(query, "code")


def _one(query: dict[str, list[str]], name: str) -> str:
    return query.get(name, [""])[0]


def _challenge(verifier: str) -> str:
    return base64url.encode(hashlib.sha256(verifier.encode()).digest())
