"""Signs mail for its domain (RFC 6376, RFC 8463): relaxed canonicalization, RSA and Ed25519, off the event loop."""

import asyncio
import base64
import hashlib
import re
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from datetime import datetime
from functools import lru_cache

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from postroom.core.errors import PostroomError
from postroom.core.mail.addresses import addresses
from postroom.core.outbound.destinations import SigningKey, SigningKeys

SHORTEST_RSA_KEY = 1024

# Signed as often as they occur; the first ones once more, so that nobody can add another (RFC 6376, 8.15).
SEALED = ("from", "to", "cc", "subject", "date", "message-id", "reply-to")
SIGNED = (
    *SEALED,
    "sender",
    "in-reply-to",
    "references",
    "mime-version",
    "content-type",
    "content-transfer-encoding",
    "content-disposition",
    "content-id",
    "auto-submitted",
    "list-id",
    "list-unsubscribe",
    "list-unsubscribe-post",
)

_FIELD = re.compile(rb"([!-9;-~]+)[ \t]*:((?:[^\r\n]*\r\n)(?:[ \t][^\r\n]*\r\n)*)")
_BLANKS = re.compile(rb"[ \t]{2,}|\t")

Field = tuple[bytes, bytes]


class CannotSign(PostroomError):
    """A key is damaged, or too short. The mail waits: unsigned it would be refused, or believed to be forged."""


class Signer:
    """Signs with the keys of the domain in `From`, or else of the envelope sender."""

    def __init__(self, keys: SigningKeys, now: Callable[[], datetime], executor: Executor | None = None) -> None:
        self._keys = keys
        self._now = now
        self._executor = executor

    async def signed(self, content: bytes, envelope_sender: str) -> bytes:
        """The content, of which every line ends in CRLF, with a signature by each key. Raises CannotSign."""
        for domain in dict.fromkeys((author_domain(content), envelope_sender.rpartition("@")[2].lower())):
            if domain and (keys := await self._keys.keys_of(domain)):
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(self._executor, with_signatures, content, tuple(keys), self._now())
        return content


def author_domain(content: bytes) -> str:
    """The domain of the first address in `From`, in ASCII and lower case; empty if there is none."""
    for name, value in _fields(content):
        if name.lower() == b"from":
            found = addresses(value.decode("utf-8", "replace").replace("\r\n", ""))
            return found[0].rpartition("@")[2] if found else ""
    return ""


def with_signatures(content: bytes, keys: Sequence[SigningKey], now: datetime) -> bytes:
    fields = _fields(content)
    body_hash = base64.b64encode(hashlib.sha256(relaxed_body(content[_head_end(content) :])).digest())
    return b"".join([*(signature(fields, body_hash, key, now) for key in keys), content])


def signature(fields: Sequence[Field], body_hash: bytes, key: SigningKey, now: datetime) -> bytes:
    """The header field `DKIM-Signature`, with its line end."""
    names = _names(fields)
    value = b"v=1; a=%s; c=relaxed/relaxed; d=%s; s=%s;\r\n\tt=%d; h=%s;\r\n\tbh=%s;\r\n\tb=" % (
        key.algorithm.encode(),
        key.domain.encode(),
        key.selector.encode(),
        int(now.timestamp()),
        _fold(b":".join(names), b":"),
        body_hash,
    )
    covered = b"".join((*_covered_fields(fields, names), _relax(b"dkim-signature", value)))
    signed = base64.b64encode(_private_key(key)(covered))
    lines = b"\r\n\t ".join(signed[at : at + 70] for at in range(0, len(signed), 70))
    return b"DKIM-Signature: " + value + lines + b"\r\n"


def relaxed_body(body: bytes) -> bytes:
    """Blanks in a row are one, those at the end of a line none, and so are empty lines at the end (RFC 6376, 3.4.4)."""
    reduced = _one_blank(body).replace(b" \r\n", b"\r\n").rstrip(b"\r\n")
    return reduced + b"\r\n" if reduced else b""


def _one_blank(text: bytes) -> bytes:
    """Blanks in a row as one. Most text has none, and finding that out is much faster than the pattern."""
    return _BLANKS.sub(b" ", text) if b"\t" in text or b"  " in text else text


def _head_end(content: bytes) -> int:
    end = content.find(b"\r\n\r\n")
    return len(content) if end < 0 else end + 4


def _fields(content: bytes) -> list[Field]:
    head = content[: _head_end(content)]
    return [(found[1], found[2]) for found in _FIELD.finditer(head)]


def _names(fields: Sequence[Field]) -> list[bytes]:
    present = [name.lower() for name, _ in fields]
    names: list[bytes] = []
    for name in (each.encode() for each in SIGNED):
        names += [name] * present.count(name)
    return names + [name.encode() for name in SEALED]


def _covered_fields(fields: Sequence[Field], names: Sequence[bytes]) -> list[bytes]:
    """The fields of these names in canonical form; of several with one name the last comes first."""
    left: dict[bytes, list[bytes]] = {}
    for name, value in fields:
        left.setdefault(name.lower(), []).append(value)
    return [_relax(name, left[name].pop()) + b"\r\n" for name in names if left.get(name)]


def _relax(name: bytes, value: bytes) -> bytes:
    return name + b":" + _one_blank(value.replace(b"\r\n", b"")).strip(b" ")


def _fold(value: bytes, at: bytes) -> bytes:
    lines: list[bytes] = []
    line = b""
    for word in value.split(at):
        if len(line) + len(word) > 70:
            lines.append(line)
            line = b""
        line += word + at
    return b"\r\n\t ".join([*lines, line])[: -len(at)]


@lru_cache(maxsize=1024)
def _private_key(key: SigningKey) -> Callable[[bytes], bytes]:
    """How the key signs. Kept, since reading and checking a key takes longer than signing."""
    try:
        if key.algorithm == "ed25519-sha256" and len(key.private) == 32:
            private = Ed25519PrivateKey.from_private_bytes(key.private)
        else:
            private = load_pem_private_key(key.private, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise CannotSign(f"the key {key.selector} of {key.domain} cannot be read") from None
    match private:
        case RSAPrivateKey() if key.algorithm == "rsa-sha256" and private.key_size >= SHORTEST_RSA_KEY:
            return lambda covered: private.sign(covered, PKCS1v15(), SHA256())
        case Ed25519PrivateKey() if key.algorithm == "ed25519-sha256":
            return lambda covered: private.sign(hashlib.sha256(covered).digest())
        case _:
            raise CannotSign(f"the key {key.selector} of {key.domain} is not a key for {key.algorithm}, or too short")
