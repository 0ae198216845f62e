"""Service accounts: programs that get a token in exchange for an assertion signed with their own key.

All of Google's checks of the assertion are made: issuer, key, audience, scopes and lifetime.
"""

import base64
import binascii
import secrets
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

import orjson
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from postroom_sandbox.consent import ConsentError
from postroom_sandbox.methods import ALL_SCOPES
from postroom_sandbox.refusal import invalid

GOOGLE_ENDPOINT = "https://oauth2.googleapis.com/token"
LONGEST_S = 3600
SKEW_S = 300

Json = dict[str, Any]


@dataclass(frozen=True)
class _Key:
    account: str
    public: rsa.RSAPublicKey


class ServiceAccounts:
    """All service accounts, by their keys."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._keys: dict[str, _Key] = {}

    def create_key(self, email: str, token_uri: str = GOOGLE_ENDPOINT) -> Json:
        """Create a key, and the account if it is new; return the content of the key file that Google would provide."""
        if "@" not in email:
            raise invalid("email is not a mail address")
        key, id = rsa.generate_private_key(65537, 2048), secrets.token_hex(20)
        self._keys[id] = _Key(email, key.public_key())
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        return {
            "type": "service_account",
            "project_id": "postroom-sandbox",
            "private_key_id": id,
            "private_key": pem,
            "client_email": email,
            "client_id": "113774264463038321964",
            "auth_uri": "https://accounts.google.com/o/oauth2/auth",
            "token_uri": token_uri,
        }

    def delete_keys(self, email: str) -> None:
        self._keys = {id: key for id, key in self._keys.items() if key.account != email}

    def check(self, statement: str, endpoint: str) -> tuple[str, frozenset[str]]:
        """The account and the scopes of an assertion. Raises ConsentError as Google would."""
        signed, _, signature = statement.rpartition(".")
        head, _, body = signed.partition(".")
        header, claims = _part(head), _part(body)
        key = self._keys.get(str(header.get("kid", "")))
        if header.get("alg") != "RS256" or key is None:
            raise ConsentError("invalid_grant", "Invalid JWT Signature.")
        try:
            key.public.verify(_bytes(signature), signed.encode(), padding.PKCS1v15(), SHA256())
        except InvalidSignature:
            raise ConsentError("invalid_grant", "Invalid JWT Signature.") from None
        if claims.get("iss") != key.account:
            raise ConsentError("invalid_grant", "Invalid grant: account not found")
        if claims.get("aud") not in (endpoint, GOOGLE_ENDPOINT):
            raise ConsentError("invalid_grant", "Failed audience check. The right audience is " + endpoint)
        self._check_life(claims)
        return key.account, _scopes(str(claims.get("scope", "")).split())

    def _check_life(self, claims: Json) -> None:
        issued, expires, now = claims.get("iat"), claims.get("exp"), self._clock().timestamp()
        if not isinstance(issued, int) or not isinstance(expires, int) or expires - issued > LONGEST_S:
            raise ConsentError("invalid_grant", "Invalid JWT: Token must be a short-lived token (60 minutes)")
        if not issued - SKEW_S <= now < expires + SKEW_S:
            raise ConsentError("invalid_grant", "Invalid JWT: iat and exp are not within a reasonable timeframe")


def _scopes(scopes: Collection[str]) -> frozenset[str]:
    if not scopes or not ALL_SCOPES.issuperset(scopes):
        raise ConsentError("invalid_scope", "Invalid OAuth scope or ID token audience provided.")
    return frozenset(scopes)


def _part(encoded: str) -> Json:
    try:
        found: object = orjson.loads(_bytes(encoded))
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise ConsentError("invalid_grant", "Bad Request")
    return cast(Json, found)


def _bytes(encoded: str) -> bytes:
    try:
        return base64.b64decode(encoded + "=" * (-len(encoded) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise ConsentError("invalid_grant", "Bad Request") from None
