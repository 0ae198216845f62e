"""Parses requests as Google does: unknown names and wrong types are refused, not ignored."""

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from typing import Any, cast

import orjson
from starlette.requests import Request

from postroom_sandbox.outgoing import LARGEST_MESSAGE
from postroom_sandbox.refusal import invalid, too_large

Json = dict[str, Any]

# Parameters that every method of a Google API accepts.
STANDARD_PARAMETERS = frozenset(
    {"$.xgafv", "access_token", "alt", "callback", "fields", "key", "oauth_token", "prettyPrint", "quotaUser",
     "uploadType", "upload_protocol"}
)  # fmt: skip

MOST_RESULTS = 500

_BOUNDARY = re.compile(r'boundary=(?:"([^"]+)"|([^\s;]+))', re.IGNORECASE)
_BLANK = re.compile(rb"\r?\n\r?\n")

# In a JSON body, base64 makes the raw message a third longer.
LARGEST_BODY = LARGEST_MESSAGE // 3 * 4 + 65_536


@dataclass(frozen=True)
class Parameters:
    """A query string whose names are all known."""

    request: Request

    def only(self, *known: str) -> "Parameters":
        for name in self.request.query_params:
            if name not in known and name not in STANDARD_PARAMETERS:
                raise invalid(f'Invalid JSON payload received. Unknown name "{name}": Cannot bind query parameter.')
        return self

    def text(self, name: str) -> str:
        return self.request.query_params.get(name, "")

    def texts(self, name: str) -> frozenset[str]:
        return frozenset(self.request.query_params.getlist(name))

    def flag(self, name: str) -> bool:
        value = self.text(name).lower() or "false"
        if value not in ("true", "false"):
            raise invalid(f"Invalid value at '{name}' (TYPE_BOOL), \"{value}\"")
        return value == "true"

    def choice(self, name: str, *allowed: str) -> str:
        """One of the allowed values; the first if none was given."""
        value = self.text(name) or allowed[0]
        if value not in allowed:
            raise invalid(f"Invalid value at '{name}' (TYPE_ENUM), \"{value}\"")
        return value

    def number(self, name: str, default: int | None = None) -> int:
        value = self.text(name)
        if not value and default is not None:
            return default
        if not (value.isascii() and value.isdigit() and len(value) <= 20):
            raise invalid(f"Invalid value at '{name}' (TYPE_UINT64), \"{value}\"")
        return int(value)

    def page_size(self) -> int:
        return min(self.number("maxResults", 100), MOST_RESULTS) or 100


async def body_of(request: Request, limit: int = LARGEST_BODY) -> bytes:
    """Read the whole body; refuse one that is larger than Google allows."""
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > limit:
            raise too_large(limit)
    return bytes(content)


async def json_body(request: Request, *known: str) -> Json:
    """The fields of a JSON body; unknown ones are refused."""
    return json_fields(await body_of(request), *known)


def json_fields(content: bytes, *known: str) -> Json:
    return known_fields(_fields(content), *known)


def known_fields(body: object, *known: str) -> Json:
    if not isinstance(body, dict):
        raise invalid("Invalid JSON payload received.")
    fields = cast(Json, body)
    for name in fields:
        if name not in known:
            raise invalid(f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.')
    return fields


async def uploaded(request: Request) -> tuple[Json, bytes | None]:
    """The JSON body and the raw message of an upload, together (multipart/related) or alone (message/rfc822)."""
    content = await body_of(request)
    kind = request.headers.get("Content-Type", "application/json")
    if kind.lower().startswith("message/"):
        return {}, content
    if not kind.lower().startswith("multipart/related"):
        return _fields(content), None
    about, media = [divided(piece)[1] for piece in multipart_pieces(kind, content)[:2]]
    return _fields(about), media


def multipart_pieces(content_type: str, content: bytes) -> list[bytes]:
    """The parts of a multipart body, byte for byte, with their headers."""
    found = _BOUNDARY.search(content_type)
    if not found:
        raise invalid("Failed to parse the body, error: no boundary in the Content-Type.")
    pieces = re.split(rb"(?:^|\r?\n)--" + re.escape((found[1] or found[2]).encode()), content)
    least = 4 if "related" in content_type.lower() else 3
    if len(pieces) < least or not pieces[-1].startswith(b"--"):
        raise invalid("Failed to parse the body, error: a part or the end boundary is missing.")
    return [piece.lstrip(b" \t").removeprefix(b"\r").removeprefix(b"\n") for piece in pieces[1:-1]]


def divided(content: bytes) -> tuple[bytes, bytes]:
    """The content before and after the first blank line."""
    if content[:1] in (b"\r", b"\n"):
        return b"", content.removeprefix(b"\r").removeprefix(b"\n")
    blank = _BLANK.search(content)
    return (content[: blank.start()], content[blank.end() :]) if blank else (content, b"")


def _fields(content: bytes) -> Json:
    try:
        body: object = orjson.loads(content or b"{}")
    except orjson.JSONDecodeError:
        raise invalid("Invalid JSON payload received.") from None
    if not isinstance(body, dict):
        raise invalid("Invalid JSON payload received.")
    return cast(Json, body)


def raw_in(fields: Json) -> bytes | None:
    """The `raw` field of a message, in URL-safe base64, padded or not."""
    text = text_in(fields, "raw")
    if not text:
        return None
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise invalid("Invalid value at 'message.raw' (TYPE_BYTES), Base64 decoding failed") from None


def texts_in(fields: Json, name: str) -> list[str]:
    values: object = fields.get(name, [])
    if not isinstance(values, list) or not all(isinstance(value, str) for value in cast("list[object]", values)):
        raise invalid(f"Invalid value at '{name}' (TYPE_STRING)")
    return cast("list[str]", values)


def text_in(fields: Json, name: str) -> str:
    value: object = fields.get(name, "")
    if not isinstance(value, str):
        raise invalid(f"Invalid value at '{name}' (TYPE_STRING)")
    return value


def flag_in(fields: Json, name: str) -> bool:
    value: object = fields.get(name, False)
    if not isinstance(value, bool):
        raise invalid(f"Invalid value at '{name}' (TYPE_BOOL)")
    return value


def int32_in(fields: Json, name: str) -> int:
    value: object = fields.get(name, 0)
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**31) <= value < 2**31:
        raise invalid(f"Invalid value at '{name}' (TYPE_INT32)")
    return value


def int64_in(fields: Json, name: str) -> int:
    """A long number, which Google's JSON has as text, and accepts as either."""
    value: object = fields.get(name, 0)
    if isinstance(value, bool) or not isinstance(value, int | str) or not re.fullmatch(r"-?[0-9]{1,18}", str(value)):
        raise invalid(f"Invalid value at '{name}' (TYPE_INT64)")
    return int(value)


def object_in(fields: Json, name: str, *known: str) -> Json:
    return known_fields(fields.get(name, {}), *known)


class PageTokens:
    """Page tokens: positions in lists as opaque texts. Each is valid only for the list it was made for."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(16)

    def make(self, listing: object, place: tuple[int, str]) -> str:
        body = f"{place[0]}:{place[1]}".encode()
        return base64.urlsafe_b64encode(self._seal(listing, body) + body).decode().rstrip("=")

    def read(self, listing: object, token: str) -> tuple[int, str] | None:
        """The position; None without a token, which means the beginning."""
        if not token:
            return None
        try:
            sealed = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
            if not hmac.compare_digest(sealed[:8], self._seal(listing, sealed[8:])):
                raise invalid("Invalid pageToken")
            number, _, name = sealed[8:].decode("ascii").partition(":")
            return int(number), name
        except (binascii.Error, ValueError):
            raise invalid("Invalid pageToken") from None

    def _seal(self, listing: object, body: bytes) -> bytes:
        return hmac.digest(self._key, repr(listing).encode() + b"\0" + body, hashlib.sha256)[:8]
