"""Codes of an authenticator app (TOTP, RFC 6238): six digits, new every 30 seconds, each usable once."""

import hmac
import re
from datetime import datetime
from urllib.parse import quote

from postroom.core.errors import BadInput

STEP_S = 30
AROUND = (0, -1, 1)
"""The steps that are accepted besides the current one: clocks differ, and typing takes a while."""
_SECRET = re.compile(r"[A-Z2-7]{32}")


def new_codes_secret() -> str:
    import pyotp

    return pyotp.random_base32()


def codes_address(secret: str, name: str, host: str) -> str:
    """The `otpauth://` address that an app reads as a link."""
    issuer = quote(f"Postroom {host}".strip())
    return f"otpauth://totp/{issuer}:{quote(name)}?secret={secret}&issuer={issuer}"


def matching_step(secret: str, code: str, now: datetime) -> int | None:
    """The step whose code this is; None if it is none of those around now."""
    import pyotp

    given, current = re.sub(r"\s", "", code), int(now.timestamp()) // STEP_S
    if not re.fullmatch(r"[0-9]{6}", given):
        return None
    app = pyotp.TOTP(secret)
    for step in (current + around for around in AROUND):
        if hmac.compare_digest(app.at(step * STEP_S), given):
            return step
    return None


def checked_secret(text: str) -> str:
    """A secret as the page offered it. Raises BadInput if it is something else."""
    if not _SECRET.fullmatch(text):
        raise BadInput("secret", "is not the one that the page offered", "open the page again")
    return text
