"""Names of folders on the wire: modified UTF-7 (RFC 3501, 5.1.3), and how people read them.

The bytes as the server wrote them stay with a folder: they are what commands name. Text that is not valid is shown as
it came, so that every folder has a name.
"""

import base64
import binascii
import re

_ENCODED = re.compile(r"&([A-Za-z0-9+,]*)-")
_SPECIAL = re.compile(r"&|[^\x20-\x7e]+")


def decoded(wire: bytes) -> str:
    """The name for people. Some servers write UTF-8 instead."""
    try:
        text = wire.decode("ascii")
    except UnicodeDecodeError:
        return wire.decode("utf-8", errors="replace")
    return _ENCODED.sub(_decode_part, text)


def encoded(name: str) -> bytes:
    """The name in modified UTF-7."""
    return _SPECIAL.sub(_encode_part, name).encode("ascii")


def _decode_part(found: re.Match[str]) -> str:
    inner = found.group(1)
    if not inner:
        return "&"
    try:
        padded = inner.replace(",", "/") + "=" * (-len(inner) % 4)
        return base64.b64decode(padded, validate=True).decode("utf-16-be")
    except (binascii.Error, UnicodeDecodeError):
        return found.group()


def _encode_part(found: re.Match[str]) -> str:
    if found.group() == "&":
        return "&-"
    raw = found.group().encode("utf-16-be", errors="replace")
    return "&" + base64.b64encode(raw).decode("ascii").rstrip("=").replace("/", ",") + "-"
