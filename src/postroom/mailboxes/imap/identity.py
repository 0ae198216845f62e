"""The id of a message, which stays the same wherever it is moved and by whomever, and how it is found by it. Pure.

By what the server offers: Gmail's X-GM-MSGID, OBJECTID's EMAILID, or else a hash of the fields that make a message what
it is, with its Message-ID, by which every server can search. A message without a usable Message-ID has the time of its
arrival instead, which moves and copies keep. So two copies in two folders have one id: they are one message.

What has come by mail has a `Received` of its own, which no other message has. Without one, as programs write messages
that put them into a mailbox themselves, the beginning of the text is part of the hash.
"""

import base64
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from postroom.mailboxes.imap.answers import Fetched, written_day
from postroom.mailboxes.imap.commands import Part, string
from postroom.mailboxes.imap.responses import Value

FIELDS = "MESSAGE-ID DATE FROM TO CC SUBJECT RECEIVED CONTENT-TYPE"
HEADER_ITEM = f"BODY.PEEK[HEADER.FIELDS ({FIELDS})]"
# Not the size, which some servers only estimate.
TEXT_SIZE = 4096
TEXT_ITEM = f"BODY.PEEK[TEXT]<0.{TEXT_SIZE}>"
_TEXT, _WHOLE = "BODY[TEXT]", "BODY[]"
Scheme = Literal["gmail", "objectid", "hash"]
EXTENSIONS: Mapping[Scheme, str] = {"gmail": "X-GM-EXT-1", "objectid": "OBJECTID"}
"""The extension that a server needs, for messages to be found by such ids."""
_LETTERS: dict[str, Scheme] = {"g": "gmail", "e": "objectid", "m": "hash", "d": "hash"}
_MESSAGE_ID = re.compile(r"[\x21-\x7e]{1,250}")
_OBJECT_ID = re.compile(r"[A-Za-z0-9_-]{1,255}")
_HEADER = re.compile(rb"^([!-9;-~]+)[ \t]*:(.*(?:\r?\n[ \t].*)*)", re.MULTILINE)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def scheme_of(capabilities: frozenset[str]) -> Scheme:
    """How a server's messages are identified."""
    if "X-GM-EXT-1" in capabilities:
        return "gmail"
    return "objectid" if "OBJECTID" in capabilities else "hash"


def items_for(scheme: Scheme) -> str:
    """The items to fetch in order to tell a message's id."""
    match scheme:
        case "gmail":
            return "X-GM-MSGID X-GM-LABELS"
        case "objectid":
            return "EMAILID"
        case "hash":
            return f"INTERNALDATE {HEADER_ITEM}"


def needs_text(message: Fetched, scheme: Scheme) -> bool:
    """Whether `TEXT_ITEM` has to be fetched as well in order to tell the id."""
    head = _head(message) if scheme == "hash" and _TEXT not in message.items else None
    return head is not None and not _has_come_by_mail(header_fields(head))


def with_own_text(message: Fetched, scheme: Scheme) -> Fetched:
    """The message with what `TEXT_ITEM` would tell, if that is needed and the message was fetched with all else."""
    _, end, text = message.content(_WHOLE).partition(b"\r\n\r\n")
    if not end or not needs_text(message, scheme):
        return message
    return Fetched(message.uid, {**message.items, _TEXT: text[:TEXT_SIZE]})


def id_of(message: Fetched, scheme: Scheme) -> str | None:
    """The id of a message of which `items_for` was fetched, and what it needs; None if the server did not tell."""
    match scheme:
        case "gmail":
            found = message.items.get("X-GM-MSGID")
            return f"g-{found}" if isinstance(found, str) and found.isdigit() else None
        case "objectid":
            found = _object_id(message.items.get("EMAILID"))
            return None if found is None else f"e-{found}"
        case "hash":
            return _hash_of(message)


@dataclass(frozen=True, slots=True)
class MessageId:
    """An id, taken apart: what kind it is, and by what the message can be searched for."""

    text: str
    scheme: Scheme
    token: str
    is_dated: bool

    def criteria(self) -> tuple[Part, ...]:
        """The search for messages that may be it. Each must be compared by its own id."""
        match self.scheme:
            case "gmail":
                return (b"X-GM-MSGID", self.token.encode())
            case "objectid":
                return (b"EMAILID", self.token.encode())
            case "hash" if self.is_dated:
                day = _EPOCH + timedelta(seconds=int(self.token))
                # Servers compare days in their own time zone.
                earliest, latest = written_day(day - timedelta(days=1)), written_day(day + timedelta(days=2))
                return (b"SINCE", earliest, b"BEFORE", latest)
            case "hash":
                return (b"HEADER MESSAGE-ID", string(self.token))


def read_id(text: str) -> MessageId | None:
    """An id that `id_of` made; None for anything else."""
    letter, _, rest = text.partition("-")
    scheme = _LETTERS.get(letter)
    if scheme == "gmail" and rest.isdigit():
        return MessageId(text, scheme, rest, is_dated=False)
    if scheme == "objectid" and _OBJECT_ID.fullmatch(rest):
        return MessageId(text, scheme, rest, is_dated=False)
    digest, _, token = rest.partition("-")
    if scheme != "hash" or not digest:
        return None
    if letter == "d" and token.isdigit() and len(token) <= 10:
        return MessageId(text, scheme, token, is_dated=True)
    return MessageId(text, scheme, token, is_dated=False) if letter == "m" and _MESSAGE_ID.fullmatch(token) else None


def _object_id(value: Value) -> str | None:
    match value:
        case (str() as found,) if _OBJECT_ID.fullmatch(found):
            return found
        case _:
            return None


def _hash_of(message: Fetched) -> str | None:
    head = _head(message)
    if head is None:
        return None
    fields = header_fields(head)
    own = next((value.strip("<>") for name, value in fields if name == "message-id"), "")
    if not _has_come_by_mail(fields):
        if _TEXT not in message.items:
            return None
        fields = [*fields, ("text", hashlib.sha256(message.content(_TEXT)).hexdigest())]
    digest = base64.b32encode(hashlib.sha256(repr(fields).encode()).digest()[:15]).decode().lower()
    if _MESSAGE_ID.fullmatch(own):
        return f"m-{digest}-{own}"
    arrived = message.internal_date or _EPOCH
    return f"d-{digest}-{max(int(arrived.timestamp()), 0)}"


def _has_come_by_mail(fields: list[tuple[str, str]]) -> bool:
    return any(name == "received" for name, _ in fields)


def _head(message: Fetched) -> bytes | None:
    """The answer to `HEADER_ITEM`: other fields may have been fetched as well."""
    return next((message.content(name) for name in message.items if _is_head(name.upper())), None)


def _is_head(name: str) -> bool:
    return name.startswith("BODY[HEADER.FIELDS") and "MESSAGE-ID" in name


def header_fields(head: bytes) -> list[tuple[str, str]]:
    """Name and value of each field, in an order of their own and without folding: servers may change both."""
    found = [
        (name.decode("latin-1").lower(), " ".join(value.decode("latin-1").split()))
        for name, value in _HEADER.findall(head)
    ]
    return sorted(found)
