"""A form that waits until its sender has proved again who they are.

The browser holds it, sealed with a key that only this session's cookie yields: nobody else can read, change or send it,
and no secret in it is stored here. It is accepted for a few minutes, and once; everything that is checked about a form
is checked again when it is carried out.
"""

import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import orjson

from postroom.core import base64url
from postroom.core.errors import SignInRefused
from postroom.operations.people.sessions import LiveSession
from postroom.store.engine.database import Database
from postroom.store.people import sessions
from postroom.system.wall_clock import Clock, wall_clock

KEPT_LIVES = timedelta(minutes=10)
LARGEST_KEPT = 256 * 1024
_NONCE_BYTES = 12


@dataclass(frozen=True, slots=True)
class KeptForm:
    """Where a form was sent, the named parts of that path, its fields, and the page that it was on."""

    address: str
    parameters: Mapping[str, str]
    fields: Sequence[tuple[str, str]]
    back: str


class KeptForms:
    def __init__(self, database: Database, clock: Clock = wall_clock) -> None:
        self._database = database
        self._clock = clock

    def seal(self, live: LiveSession, form: KeptForm) -> str | None:
        """Return the form as the browser may hold it; None if it is too large for that."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        ends = (self._clock() + KEPT_LIVES).timestamp()
        content = orjson.dumps([ends, form.address, dict(form.parameters), form.fields, form.back])
        if len(content) > LARGEST_KEPT:
            return None
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return base64url.encode(nonce + AESGCM(_key(live)).encrypt(nonce, content, _bound_to(live)))

    async def open(self, live: LiveSession, text: str) -> tuple[KeptForm, str]:
        """Return the form, and use it up; with a sentence if it is too old to be carried out.

        Raise SignInRefused if it is not this session's, or was used before.
        """
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            sealed = base64url.decode(text)
            content = AESGCM(_key(live)).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], _bound_to(live))
        except (ValueError, InvalidTag):
            raise SignInRefused("Nothing was done: this request is not from your session. Send it again.") from None
        ends, address, parameters, fields, back = orjson.loads(content)
        expires_at, now = datetime.fromtimestamp(ends, UTC), self._clock()
        form = KeptForm(address, parameters, [(name, value) for name, value in fields], back)
        if not now < expires_at <= now + KEPT_LIVES:
            return form, "Nothing was done: that took too long. Send it again."
        if not await self._database.run(sessions.use_challenge(hashlib.sha256(sealed).hexdigest(), expires_at)):
            raise SignInRefused("This was sent before. Check whether it was done before you send it again.")
        return form, ""


def _key(live: LiveSession) -> bytes:
    return hmac.digest(live.key.encode(), b"postroom kept form", "sha256")


def _bound_to(live: LiveSession) -> bytes:
    return f"{live.kept.id}:{live.kept.person_id}".encode()
