"""Access tokens for a Google service account: an assertion signed with the key in its key file is exchanged for a token
that is valid for an hour.

The file is read again for every token, so that a corrected one is used without a restart. Errors never contain any part
of the key: they name the setting, the file and the remedy.
"""

import os
import shlex
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn, cast

import httpx2
import orjson
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from postroom.core import base64url
from postroom.core.errors import SettingsError
from postroom.mailboxes.gmail.errors import GmailError
from postroom.mailboxes.gmail.oauth import GoogleAppRefused, ask_endpoint, grant_in, refuse
from postroom.mailboxes.gmail.tokens import GmailAccessToken, Tokens

GRANT_TYPE = "urn:ietf:params:oauth:grant-type:jwt-bearer"
LIFE = timedelta(hours=1)
LARGEST_FILE = 65_536
# Anybody who holds the assertion can use it, so it is sent only to Google's own token endpoints.
GOOGLE_ENDPOINTS = frozenset(
    {
        "https://oauth2.googleapis.com/token",
        "https://accounts.google.com/o/oauth2/token",
        "https://www.googleapis.com/oauth2/v4/token",
    }
)


# Google's errors that waiting does not fix, each with the possible cause and the remedy.
_ADVICE = {
    "invalid_grant": (
        "the key was deleted, the account is disabled, or the clock of this machine is wrong",
        "check the clock, or put the file of a new key into {setting}",
    ),
    "invalid_client": (
        "Google no longer knows the account of the key",
        "put the key file of an existing account into {setting}",
    ),
    "unauthorized_client": (
        "the account may not get tokens of this kind",
        "put the key file of an account of the project that has the subscription into {setting}",
    ),
    "invalid_scope": (
        "the account may not get tokens for Pub/Sub",
        "enable the Cloud Pub/Sub API in its project, or put the key file of another account into {setting}",
    ),
}


class KeyRefused(GmailError):
    """Google does not accept the service account's key. `reason` is Google's own word."""

    def __init__(self, account: str, setting: str, reason: str) -> None:
        cause, remedy = _ADVICE.get(reason, _ADVICE["invalid_client"])
        remedy_text = remedy.format(setting=setting)
        super().__init__(f"Google does not accept the key of {account} ({reason}): {cause}; {remedy_text}")
        self.reason = reason


@dataclass(frozen=True)
class ServiceAccount:
    """The content of a key file."""

    email: str
    key_id: str
    token_url: str
    key: rsa.RSAPrivateKey = field(repr=False)

    def statement(self, scopes: Collection[str], now: datetime) -> str:
        """The assertion of who asks, for what and until when, as a JWT (RS256)."""
        head = {"alg": "RS256", "typ": "JWT", "kid": self.key_id}
        issued = int(now.timestamp())
        claims = {
            "iss": self.email,
            "scope": " ".join(scopes),
            "aud": self.token_url,
            "iat": issued,
            "exp": issued + int(LIFE.total_seconds()),
        }
        signed = ".".join(base64url.encode(orjson.dumps(part)) for part in (head, claims))
        return f"{signed}.{base64url.encode(self.key.sign(signed.encode(), padding.PKCS1v15(), SHA256()))}"


class ServiceAccountKeyFile:
    """The key file of a service account, named by a setting; `trusted` are token endpoints besides Google's own."""

    def __init__(self, path: Path, setting: str, trusted: Collection[str] = ()) -> None:
        self._path = path.expanduser()
        self._endpoints = GOOGLE_ENDPOINTS | set(trusted)
        self.setting = setting

    def read(self) -> ServiceAccount:
        """Read the file. Raises SettingsError, which quotes nothing from the file."""
        fields = _fields(self._content())
        email, key_id, url, pem = (
            fields.get(name) for name in ("client_email", "private_key_id", "token_uri", "private_key")
        )
        texts = (email, key_id, url, pem)
        if fields.get("type") != "service_account" or not all(isinstance(text, str) and text for text in texts):
            raise self._wrong(
                "is not a key file of a service account",
                "create one in the Google Cloud console under IAM, Service accounts, Keys, as JSON",
            )
        if url not in self._endpoints:
            remedy = "use the file as Google made it; its token_uri is https://oauth2.googleapis.com/token"
            raise self._wrong("names a token endpoint that is not Google's", remedy)
        return ServiceAccount(cast(str, email), cast(str, key_id), cast(str, url), self._key(cast(str, pem)))

    def _content(self) -> bytes:
        try:
            with self._path.open("rb") as file:
                mode = os.fstat(file.fileno()).st_mode
                if mode & 0o077:
                    named = shlex.quote(str(self._path))
                    remedy = f"run `chmod 600 {named}`, and if others could have read it, create a new key"
                    raise self._wrong(f"is readable by others than its owner (mode {mode & 0o777:03o})", remedy)
                return file.read(LARGEST_FILE)
        except OSError as error:
            remedy = "correct the path, or let the user that runs Postroom read it"
            raise self._wrong(f"cannot be read ({error.strerror})", remedy) from None

    def _key(self, pem: str) -> rsa.RSAPrivateKey:
        try:
            key = load_pem_private_key(pem.encode(), None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            key = None
        # Raised out here, so that the unreadable key is not kept with the error.
        if not isinstance(key, rsa.RSAPrivateKey):
            raise self._wrong(
                "contains a private key that cannot be read", "create a new key, and use its file unchanged"
            )
        return key

    def _wrong(self, problem: str, remedy: str) -> SettingsError:
        return SettingsError(f"{self.setting}: {self._path} {problem}; {remedy}")


def service_account_tokens(
    http: httpx2.AsyncClient, file: ServiceAccountKeyFile, scopes: Collection[str], clock: Callable[[], datetime]
) -> Tokens:
    """The tokens of the file's account. Fetching raises SettingsError, KeyRefused, or TokenUnavailable for now."""

    async def fetch(refused: str | None) -> GmailAccessToken:
        account, asked_at = file.read(), clock()
        form = {"grant_type": GRANT_TYPE, "assertion": account.statement(scopes, asked_at)}
        status, answer = await ask_endpoint(http, account.token_url, form)
        if answer.get("error") == "invalid_grant":
            raise KeyRefused(account.email, file.setting, "invalid_grant")
        if status != 200:
            _refuse(account.email, file.setting, status, answer)
        grant = grant_in(answer, scopes)
        return GmailAccessToken(grant.access_token, asked_at + grant.expires_in)

    return Tokens(fetch, clock)


def _refuse(account: str, setting: str, status: int, answer: Mapping[str, Any]) -> NoReturn:
    """Like `refuse`, but where that blames the app, the key's account is at fault: no app is involved."""
    try:
        refuse(status, answer)
    except GoogleAppRefused as refusal:
        reason = refusal.reason
    raise KeyRefused(account, setting, reason)


def _fields(content: bytes) -> dict[str, Any]:
    try:
        found: object = orjson.loads(content)
    except orjson.JSONDecodeError:
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
