"""Passkeys (WebAuthn): what the browser is asked for, and the check of its answer.

A challenge is signed instead of stored, so that strangers who ask for one leave nothing behind; it says what it is for
and when it ends. Answers are remembered until then, so that each counts once. The person is always verified by the
device (a PIN, a finger), so that a passkey counts for two factors and no code is asked for besides.
"""

import hmac
import ipaddress
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import UUID

import orjson

from postroom.core import base64url
from postroom.core.errors import SignInRefused
from postroom.core.sign_in.session_times import CHALLENGE_LIVES
from postroom.operations.people.people import hashed
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.people.people import KnownPasskey, NewPasskey
from postroom.store.people.sessions import challenge_key
from postroom.system.wall_clock import Clock, wall_clock

TIME_BYTES, RANDOM_BYTES = 8, 16
LONGEST_NAME = 60
LOCAL = "localhost"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SiteAddress:
    """Where the browser sees the pages: the name without a port, and the origin."""

    host: str
    origin: str

    @property
    def can_have_passkeys(self) -> bool:
        """Browsers make passkeys for names, not for addresses, and only where the connection is safe."""
        try:
            ipaddress.ip_address(self.host)
        except ValueError:
            return self.origin.startswith("https://") or self.host == LOCAL or self.host.endswith(f".{LOCAL}")
        return False


@dataclass(frozen=True, slots=True)
class Challenge:
    """A challenge that is ours, by the hash under which it is used up."""

    sha256: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Assertion:
    """The proof that somebody has a passkey."""

    passkey: KnownPasskey
    sign_count: int
    challenge: Challenge


class Challenges:
    """Signs challenges and checks them."""

    def __init__(self, database: Database, clock: Clock = wall_clock) -> None:
        self._database = database
        self._clock = clock
        self._key: bytes | None = None

    async def new(self, purpose: str) -> bytes:
        ends = int((self._clock() + CHALLENGE_LIVES).timestamp())
        head = ends.to_bytes(TIME_BYTES) + secrets.token_bytes(RANDOM_BYTES)
        return head + await self._mac(head, purpose)

    async def check(self, challenge: bytes, purpose: str) -> Challenge:
        """Raise SignInRefused if the challenge is not ours, was made for something else, or has ended."""
        head, mac = challenge[: TIME_BYTES + RANDOM_BYTES], challenge[TIME_BYTES + RANDOM_BYTES :]
        if not hmac.compare_digest(mac, await self._mac(head, purpose)):
            raise refused()
        expires_at = datetime.fromtimestamp(int.from_bytes(head[:TIME_BYTES]), UTC)
        if expires_at <= self._clock():
            raise SignInRefused("That took too long. Try again.")
        return Challenge(hashed(base64url.encode(challenge)), expires_at)

    async def _mac(self, head: bytes, purpose: str) -> bytes:
        if self._key is None:
            candidate = secrets.token_urlsafe(32)
            self._key = (await self._database.run(challenge_key(candidate, self._clock()))).encode()
        return hmac.digest(self._key, purpose.encode() + b"\0" + head, "sha256")


def sign_in_options(site: SiteAddress, challenge: bytes) -> Mapping[str, Any]:
    """Return the options with which the browser finds a passkey for this site."""
    from webauthn import generate_authentication_options, options_to_json
    from webauthn.helpers.structs import UserVerificationRequirement

    options = generate_authentication_options(
        rp_id=site.host, challenge=challenge, user_verification=UserVerificationRequirement.REQUIRED
    )
    return orjson.loads(options_to_json(options))


def registration_options(
    site: SiteAddress, challenge: bytes, person_id: UUID, name: str, known: Sequence[str]
) -> Mapping[str, Any]:
    """Return the options with which the browser makes a passkey for this person; `known` are those that they have."""
    from webauthn import generate_registration_options, options_to_json
    from webauthn.helpers.structs import (
        AuthenticatorSelectionCriteria,
        PublicKeyCredentialDescriptor,
        ResidentKeyRequirement,
        UserVerificationRequirement,
    )

    options = generate_registration_options(
        rp_id=site.host,
        rp_name="Postroom",
        user_id=person_id.bytes,
        user_name=name,
        user_display_name=name,
        challenge=challenge,
        authenticator_selection=AuthenticatorSelectionCriteria(
            resident_key=ResidentKeyRequirement.REQUIRED, user_verification=UserVerificationRequirement.REQUIRED
        ),
        exclude_credentials=[PublicKeyCredentialDescriptor(id=base64url.decode(each)) for each in known],
    )
    return orjson.loads(options_to_json(options))


def challenge_in(credential: Mapping[str, Any]) -> bytes:
    """The challenge that the browser says it has answered."""
    from webauthn.helpers import parse_client_data_json

    return _or_refused(
        lambda: parse_client_data_json(base64url.decode(credential["response"]["clientDataJSON"])).challenge
    )


def credential_id_in(credential: Mapping[str, Any]) -> str:
    given = credential.get("id")
    if not isinstance(given, str) or not 1 <= len(given) <= 2_000:
        raise refused()
    return given


def check_assertion(site: SiteAddress, credential: Mapping[str, Any], known: KnownPasskey, challenge: bytes) -> int:
    """Check that the passkey has signed the challenge for this site; return its new count of signatures."""
    from webauthn import verify_authentication_response

    user = credential.get("response", {}).get("userHandle")
    if user is not None and user != base64url.encode(known.person_id.bytes):
        raise refused()
    verified = _or_refused(
        lambda: verify_authentication_response(
            credential=dict(credential),
            expected_challenge=challenge,
            expected_rp_id=site.host,
            expected_origin=site.origin,
            credential_public_key=base64url.decode(known.public_key),
            credential_current_sign_count=known.sign_count,
            require_user_verification=True,
        )
    )
    return verified.new_sign_count


def check_registration(site: SiteAddress, credential: Mapping[str, Any], challenge: bytes, name: str) -> NewPasskey:
    """Check a passkey that the browser has just made for this site."""
    from webauthn import verify_registration_response

    verified = _or_refused(
        lambda: verify_registration_response(
            credential=dict(credential),
            expected_challenge=challenge,
            expected_rp_id=site.host,
            expected_origin=site.origin,
            require_user_verification=True,
        )
    )
    shown = "".join(char for char in name if char.isprintable()).strip()[:LONGEST_NAME] or "passkey"
    credential_id = base64url.encode(verified.credential_id)
    public_key = base64url.encode(verified.credential_public_key)
    return NewPasskey(new_id(), credential_id, public_key, verified.sign_count, site.host, shown)


def refused() -> SignInRefused:
    return SignInRefused("This passkey was not accepted. Try again, or sign in another way.")


def _or_refused(check: Callable[[], T]) -> T:
    """Anything can be wrong with what a browser sends, and the library has an error for each."""
    try:
        return check()
    except Exception:
        raise refused() from None
