"""Where a page of a list ends, as an opaque text that the caller sends back as `next`.

It names the list, and a checksum finds out when it was cut or changed on its way. It is no secret: whoever makes one up
gets a page of what they may read anyway, or an error.
"""

import binascii
import hashlib

from postroom.core import base64url
from postroom.core.errors import BadInput

LONGEST = 1_500
_CHECKSUM = 6


def sealed(list_name: str, key: str | int | None) -> str | None:
    """Return the cursor of this key; None at the end of the list."""
    if key is None:
        return None
    content = f"{list_name}\n{key}".encode()
    return base64url.encode(_checksum(content) + content)


def opened(list_name: str, cursor: str | None) -> str | None:
    """Return the key in the cursor; None without one. Raises BadInput if it is no cursor of this list."""
    if cursor is None:
        return None
    try:
        found = base64url.decode(cursor)
        named, _, key = found[_CHECKSUM:].decode().partition("\n")
    except (binascii.Error, ValueError):
        raise _bad() from None
    if found[:_CHECKSUM] != _checksum(found[_CHECKSUM:]) or named != list_name or "\0" in key:
        raise _bad()
    return key


def opened_number(list_name: str, cursor: str | None) -> int | None:
    """Return the number in the cursor of a list whose keys are numbers."""
    key = opened(list_name, cursor)
    if key is None:
        return None
    if not key.isascii() or not key.isdecimal() or len(key) > 18:
        raise _bad()
    return int(key)


def _checksum(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()[:_CHECKSUM]


def _bad() -> BadInput:
    return BadInput("next", "is no cursor of this list", "use the one of the page before, or leave it out")
