"""The message of a submitted mail: checked once, whichever way it comes, and completed as the standards ask.

Lines end in CRLF and nothing else, so that no server downstream can see two mails in one. The header is read field by
field: From, and Sender if there is one, must be the sender's own. `Bcc` and `Return-Path` are taken out (with what only
Postroom reads), `Received` is put in front, and `Date` and `Message-ID` are added if they are missing (RFC 6409,
section 8). Everything else stays as it was, byte for byte.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import format_datetime
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

from postroom.core.errors import SubmissionRefused
from postroom.core.mail.addresses import listed_addresses
from postroom.core.mail.words import decode_words
from postroom.core.outbound.sender_addresses import may_send_as
from postroom.core.outbound.transport import MessageClass
from postroom.core.submission.envelope import read_time, release_time

KIB = 1024
LONGEST_LINE = 998
# As in Postfix. More servers than that are a loop.
MOST_HOPS = 50
LARGEST_HEADER = 256 * KIB
MOST_FIELDS = 1000
LONGEST_SUBJECT = 500
SEND_AT = b"x-postroom-send-at"

_FIELD = re.compile(rb"([!-9;-~]+)[ \t]*:((?:[^\r]|\r\n[ \t])*)\r\n")
_FOLD = re.compile(r"\r\n([ \t])")
_NAME = re.compile(r'"(?:[^"\\]|\\.)*"|\((?:[^()\\]|\\.)*\)', re.DOTALL)
_TAKEN_OUT = frozenset({b"bcc", b"return-path", SEND_AT})
_ONCE = (b"from", b"sender", b"date", b"message-id", b"subject")
_BULK = frozenset({"bulk", "list", "junk"})


class Trace(NamedTuple):
    """The contents of `Received`: the client's name, ours, the protocol (RFC 3848), and when."""

    client: str
    host: str
    protocol: str
    now: datetime


@dataclass(frozen=True, slots=True)
class CheckedMessage:
    """A message as it is queued."""

    content: bytes = field(repr=False)
    subject: str
    message_class: MessageClass
    is_8bit: bool
    not_before: datetime | None = None
    message_id: str | None = None
    """By which a report about the mail is recognised."""


class _Field(NamedTuple):
    name: bytes
    value: bytes
    start: int
    end: int


def check_message(
    id: UUID, content: bytes, addresses: Sequence[str], trace: Trace, *, smtputf8: bool = False
) -> CheckedMessage:
    """The message of a sender who may write from addresses of these patterns. Raises SubmissionRefused."""
    check_lines(content)
    fields, end = _fields(content)
    is_8bit = not content.isascii()
    if is_8bit:
        _check_script(content[:end], smtputf8)
    by_name = _by_name(fields)
    if sum(field.name == b"received" for field in fields) > MOST_HOPS:
        problem = f"it has passed through more than {MOST_HOPS} servers"
        raise SubmissionRefused("Received", problem, "look for servers that send mail to each other", 554, "5.4.6")
    _check_author(by_name, tuple(addresses))
    head = [_received_header(id, trace)]
    if b"date" not in by_name:
        head.append(f"Date: {_date(trace.now.replace(microsecond=0))}\r\n")
    message_id = by_name.get(b"message-id", f"<{id}@{trace.host}>")
    if b"message-id" not in by_name:
        head.append(f"Message-ID: {message_id}\r\n")
    return CheckedMessage(
        "".join(head).encode() + _without(content, fields),
        _subject(by_name),
        "bulk" if _is_bulk(by_name) else "transactional",
        is_8bit,
        _send_at(by_name, trace.now),
        message_id[:LONGEST_LINE] or None,
    )


def check_lines(content: bytes) -> None:
    """Refuse forbidden content: line ends other than CRLF, lines that are too long, and NUL."""
    breaks = content.count(b"\r\n")
    if not breaks == content.count(b"\n") == content.count(b"\r"):
        raise SubmissionRefused("message", "a line ends in LF or CR alone", "end every line in CRLF", 550, "5.6.11")
    if b"\0" in content:
        raise SubmissionRefused("message", "there is a NUL character", "encode binary content as base64")
    if max(map(len, content.split(b"\r\n"))) > LONGEST_LINE:
        problem, remedy = f"a line is longer than {LONGEST_LINE} characters", "encode the text, or break its lines"
        raise SubmissionRefused("message", problem, remedy)


def with_line_ends(content: bytes) -> bytes:
    """The content of a file, whose lines may end in LF throughout, with CRLF at the end of every line."""
    if b"\r" not in content:
        content = content.replace(b"\n", b"\r\n")
    return content if content.endswith(b"\r\n") else content + b"\r\n"


def header_values(content: bytes, name: bytes) -> list[str]:
    """The values of every field of this name, which is given in lower case."""
    check_lines(content)
    found, _ = _fields(content)
    return [_FOLD.sub(r"\1", each.value.decode("utf-8", "replace")).strip() for each in found if each.name == name]


def _fields(content: bytes) -> tuple[list[_Field], int]:
    """The fields of the header, and where it ends."""
    found: list[_Field] = []
    at = 0
    while match := _FIELD.match(content, at):
        found.append(_Field(match[1].lower(), match[2], at, match.end()))
        at = match.end()
        if at > LARGEST_HEADER or len(found) > MOST_FIELDS:
            problem = f"the header has more than {LARGEST_HEADER // KIB} KiB or {MOST_FIELDS} fields"
            raise SubmissionRefused("message", problem, "send a shorter one")
    if at < len(content) and not content.startswith(b"\r\n", at):
        line = content.count(b"\r\n", 0, at) + 1
        problem = f"line {line} of the header is not a field"
        raise SubmissionRefused("message", problem, "begin with fields, such as From, and an empty line after them")
    return found, at


def _by_name(fields: Sequence[_Field]) -> dict[bytes, str]:
    """The values of the fields; where one occurs more than once, that of the first."""
    values: dict[bytes, str] = {}
    for name, value, _, _ in fields:
        if name not in values:
            text = value.decode("utf-8", "replace")
            values[name] = (_FOLD.sub(r"\1", text) if "\r" in text else text).strip()
        elif name in _ONCE:
            problem = f"there is more than one {name.decode().title()} field"
            raise SubmissionRefused("message", problem, "leave one of them (RFC 5322, section 3.6)")
    return values


def _check_script(header: bytes, smtputf8: bool) -> None:
    if header.isascii():
        return
    if not smtputf8:
        raise SubmissionRefused(
            "message", "the header is not ASCII", "encode it (RFC 2047), or use SMTPUTF8", 550, "5.6.7"
        )
    try:
        header.decode()
    except UnicodeDecodeError:
        raise SubmissionRefused("message", "the header is not UTF-8", "write it in UTF-8", 550, "5.6.7") from None


def _check_author(fields: dict[bytes, str], patterns: tuple[str, ...]) -> None:
    """From, and Sender if there is one, are addresses of the sender. Several authors need a Sender (RFC 5322)."""
    if b"from" not in fields:
        raise SubmissionRefused("From", "there is none", "add From with your address")
    authors = _mailboxes("From", fields[b"from"])
    senders = _mailboxes("Sender", fields[b"sender"]) if b"sender" in fields else ()
    if len(senders) > 1 or (len(authors) > 1 and not senders):
        raise SubmissionRefused("Sender", "several authors need one Sender", "add Sender with your address")
    for name, found in (("From", authors), ("Sender", senders)):
        for address in found:
            check_address(name, address, patterns)


def check_address(field: str, address: str, patterns: tuple[str, ...]) -> None:
    """Raise SubmissionRefused unless the sender may write from this address."""
    if not _may_send_as(patterns, address):
        raise SubmissionRefused(field, "this address is not yours", "use one that you may send from", 553, "5.7.1")


@lru_cache(10_000)
def _may_send_as(patterns: tuple[str, ...], address: str) -> bool:
    return may_send_as(patterns, address)


@lru_cache(10_000)
def _mailboxes(name: str, value: str) -> tuple[str, ...]:
    """The addresses of a field that names authors. What programs could read in two ways is refused."""
    found = [] if ";" in _NAME.sub("", value) else listed_addresses(value)
    addresses = tuple(each.address for each in found if each.address is not None)
    if not found or len(addresses) != len(found) or any("@" in _phrase(each.text) for each in found):
        raise SubmissionRefused(name, "it cannot be read as addresses", 'write it as "Name" <address>')
    return addresses


def _phrase(text: str) -> str:
    """The name before an address in brackets, without quoted parts."""
    return _NAME.sub("", text).rpartition("<")[0]


@lru_cache(16)
def _date(moment: datetime) -> str:
    return format_datetime(moment)


def _received_header(id: UUID, trace: Trace) -> str:
    when = _date(trace.now.replace(microsecond=0))
    return f"Received: from {trace.client} by {trace.host} with {trace.protocol}\r\n\tid {id}; {when}\r\n"


def _without(content: bytes, fields: Sequence[_Field]) -> bytes:
    """The message without the fields that are taken out."""
    pieces: list[bytes] = []
    at = 0
    for name, _, start, end in fields:
        if name in _TAKEN_OUT:
            pieces.append(content[at:start])
            at = end
    return b"".join((*pieces, content[at:])) if at else content


def _subject(fields: dict[bytes, str]) -> str:
    text = " ".join(decode_words(fields.get(b"subject", ""))[: 4 * LONGEST_SUBJECT].split())
    if text.isprintable():
        return text[:LONGEST_SUBJECT]
    return "".join(each if each.isprintable() else "\ufffd" for each in text[:LONGEST_SUBJECT])


def _is_bulk(fields: dict[bytes, str]) -> bool:
    return b"list-unsubscribe" in fields or b"list-id" in fields or fields.get(b"precedence", "").lower() in _BULK


def _send_at(fields: dict[bytes, str], now: datetime) -> datetime | None:
    if SEND_AT not in fields:
        return None
    return release_time(read_time(fields[SEND_AT], "X-Postroom-Send-At"), now, "X-Postroom-Send-At")
