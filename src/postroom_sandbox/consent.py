"""Google's side of OAuth: consents, codes, refresh and access tokens, and how they end.

requested -> granted (some scopes may be withheld) -> code, valid once, for 10 minutes -> refresh token
refresh token -> access tokens of an hour each, until revoked; in "testing" for 7 days
"""

import base64
import hashlib
import secrets
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from postroom_sandbox.methods import ALL_SCOPES
from postroom_sandbox.refusal import SandboxError

CLIENT_ID = "postroom-sandbox.apps.googleusercontent.com"
CLIENT_SECRET = "sandbox-secret"  # noqa: S105 - everybody may know it
ACCESS_LIFE = timedelta(hours=1)
CODE_LIFE = timedelta(minutes=10)
TESTING_LIFE = timedelta(days=7)


class ConsentError(SandboxError):
    """A refusal of the token endpoint, with OAuth's error code."""

    def __init__(self, error: str, description: str, code: int = 400) -> None:
        super().__init__(f"{error}: {description}")
        self.error = error
        self.description = description
        self.code = code


@dataclass(frozen=True)
class Client:
    """An app that may ask for consent. Redirects to this machine need no registration."""

    id: str
    secret: str
    redirects: frozenset[str] = frozenset()


@dataclass
class Grant:
    """A consent of a user to an app."""

    user: str
    client_id: str
    scopes: frozenset[str]
    granted_at: datetime
    refresh_token: str
    revoked: bool = False


@dataclass(frozen=True)
class Access:
    """An access token: the user, the scopes, and the expiry (None for never)."""

    token: str
    user: str
    scopes: frozenset[str]
    expires_at: datetime | None
    grant: Grant | None = None


@dataclass(frozen=True)
class Issued:
    """The tokens that the token endpoint issues."""

    access_token: str
    expires_in: int
    scopes: frozenset[str]
    user: str
    refresh_token: str | None = None
    refresh_expires_in: int | None = None


@dataclass(frozen=True)
class PendingCode:
    """A granted request for consent whose code has not been redeemed yet."""

    client_id: str
    redirect_uri: str
    challenge: str
    user: str
    scopes: frozenset[str]
    offline: bool
    at: datetime


@dataclass
class Behaviour:
    """How the user and Google respond; tests change it."""

    deny: bool = False
    withheld: frozenset[str] = frozenset()
    testing: bool = False
    access_life: timedelta = ACCESS_LIFE


@dataclass
class Consents:
    """All consents of the emulator."""

    clock: Callable[[], datetime]
    clients: dict[str, Client] = field(default_factory=lambda: {CLIENT_ID: Client(CLIENT_ID, CLIENT_SECRET)})
    behaviour: Behaviour = field(default_factory=Behaviour)
    grants: list[Grant] = field(default_factory=list[Grant])
    _codes: dict[str, PendingCode] = field(default_factory=dict[str, PendingCode])
    _access: dict[str, Access] = field(default_factory=dict[str, Access])

    def register(self, client_id: str, secret: str, redirects: Collection[str] = ()) -> Client:
        client = Client(client_id, secret, frozenset(redirects))
        self.clients[client_id] = client
        return client

    def admit(self, token: str, user: str, scopes: Collection[str] = ALL_SCOPES) -> None:
        """Add a given token, which never expires."""
        self._access[token] = Access(token, user, frozenset(scopes), None)

    def issue(self, user: str, scopes: Collection[str] = ALL_SCOPES, client_id: str = CLIENT_ID) -> Issued:
        """Grant a consent without a browser; return both tokens."""
        return self._tokens(self._grant(user, client_id, frozenset(scopes)), with_refresh=True)

    def issue_to_service(self, account: str, scopes: Collection[str]) -> Issued:
        """Issue a token to a service account, which needs no consent and gets no refresh token."""
        life = self.behaviour.access_life
        token = f"ya29.c.{secrets.token_urlsafe(48)}"
        self._access[token] = Access(token, account, frozenset(scopes), self.clock() + life)
        return Issued(token, max(int(life.total_seconds()) - 1, 0), frozenset(scopes), account)

    def code_for(self, pending: PendingCode) -> str:
        code = f"4/0A{secrets.token_urlsafe(40)}"
        self._codes[code] = pending
        return code

    def redeem(self, client_id: str, code: str, redirect_uri: str, verifier: str) -> Issued:
        """Exchange a code for tokens; it is valid once."""
        pending = self._codes.pop(code, None)
        if pending is None or pending.client_id != client_id or self.clock() > pending.at + CODE_LIFE:
            raise ConsentError("invalid_grant", "Malformed auth code." if pending is None else "Bad Request")
        if pending.redirect_uri != redirect_uri:
            raise ConsentError("redirect_uri_mismatch", "Bad Request")
        if pending.challenge and not verifier:
            raise ConsentError("invalid_grant", "Missing code verifier.")
        if pending.challenge and not secrets.compare_digest(challenge_of(verifier), pending.challenge):
            raise ConsentError("invalid_grant", "Invalid code verifier.")
        return self._tokens(self._grant(pending.user, client_id, pending.scopes), with_refresh=pending.offline)

    def refresh(self, client_id: str, refresh_token: str) -> Issued:
        grant = next((each for each in self.grants if each.refresh_token == refresh_token), None)
        if grant is None or grant.client_id != client_id:
            raise ConsentError("invalid_grant", "Bad Request")
        if grant.revoked or self._died_in_testing(grant):
            raise ConsentError("invalid_grant", "Token has been expired or revoked.")
        return self._tokens(grant, with_refresh=False)

    def access(self, token: str) -> Access | None:
        """The access token, if it is still valid."""
        found = self._access.get(token)
        if found is None or (found.expires_at is not None and self.clock() >= found.expires_at):
            return None
        return None if found.grant is not None and found.grant.revoked else found

    def revoke(self, token: str) -> bool:
        """Revoke the consent behind an access or refresh token, with all its tokens."""
        access = self._access.pop(token, None)
        if access is not None and access.grant is None:
            return True
        grant = access.grant if access else next((each for each in self.grants if each.refresh_token == token), None)
        if grant is None or grant.revoked:
            return False
        grant.revoked = True
        return True

    def revoke_user(self, user: str) -> None:
        """Revoke every consent of the user, as on their account page."""
        for grant in self.grants:
            grant.revoked |= grant.user == user
        self._access = {token: access for token, access in self._access.items() if access.user != user}

    def expire_access(self, user: str | None = None) -> None:
        """Expire every access token that came from a consent."""
        self._access = {
            token: access
            for token, access in self._access.items()
            if access.expires_at is None or (user is not None and access.user != user)
        }

    def _grant(self, user: str, client_id: str, scopes: frozenset[str]) -> Grant:
        grant = Grant(user, client_id, scopes, self.clock(), f"1//0{secrets.token_urlsafe(48)}")
        self.grants.append(grant)
        return grant

    def _tokens(self, grant: Grant, with_refresh: bool) -> Issued:
        life = self.behaviour.access_life
        token = f"ya29.{secrets.token_urlsafe(48)}"
        self._access[token] = Access(token, grant.user, grant.scopes, self.clock() + life, grant)
        remaining = grant.granted_at + TESTING_LIFE - self.clock()
        return Issued(
            token,
            max(int(life.total_seconds()) - 1, 0),
            grant.scopes,
            grant.user,
            grant.refresh_token if with_refresh else None,
            int(remaining.total_seconds()) if self.behaviour.testing and with_refresh else None,
        )

    def _died_in_testing(self, grant: Grant) -> bool:
        return self.behaviour.testing and self.clock() >= grant.granted_at + TESTING_LIFE


def challenge_of(verifier: str) -> str:
    """PKCE's S256."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
