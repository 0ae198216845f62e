"""The head of a raw message: where it ends, and its decoded headers, in order, with repeated ones kept.

Nothing in it is trusted. Values are cut at 64 KiB and the head at 1 MiB; lines that are not headers are skipped; a lone
CR ends a line only in a message without any LF, and several before an LF belong to the line end.
"""

import re
from email.utils import parseaddr
from typing import NamedTuple

from postroom.core.mail.addresses import LONGEST_VALUE, readable_addresses
from postroom.core.mail.charsets import decode_text
from postroom.core.mail.words import decode_words

Headers = tuple[tuple[str, str], ...]

LARGEST_HEAD = 1_048_576
ADDRESS_HEADERS = frozenset(
    {"from", "to", "cc", "bcc", "sender", "reply-to", "return-path", "delivered-to", "x-original-to", "resent-from"}
)
_END = re.compile(rb"\n\r*+\n")
_HEADER = re.compile(rb"^([!-9;-~]++)[ \t]*+:([^\n]*+(?:\n[ \t][^\n]*+)*+)", re.MULTILINE)
_FOLD = re.compile(rb"\r*+\n")
_SMOOTH = str.maketrans({"\0": "\ufffd", "\r": " "})


class Head(NamedTuple):
    """The bytes of the head, where the body begins, and whether the head was too large and had to be cut."""

    block: bytes
    body_at: int
    cut: bool


class ReadHead(NamedTuple):
    headers: Headers
    problems: tuple[str, ...]


def values(headers: Headers, name: str) -> list[str]:
    """Every value of a header; its `name` is given in lower case."""
    length = len(name)  # most names differ in it
    return [value for key, value in headers if len(key) == length and key.lower() == name]


def sender_name(headers: Headers) -> str:
    """The name of the sender, as the message gives it; empty when there is none. Anybody may write any name."""
    return next((name for value in values(headers, "from") if (name := parseaddr(value)[0])), "")


def with_line_ends(raw: bytes) -> bytes:
    """The message with LF line ends, if it had only CR."""
    return raw if b"\n" in raw or b"\r" not in raw else raw.replace(b"\r", b"\n")


def head_of(raw: bytes) -> Head:
    """The head: everything up to the first empty line, after any empty lines at the very beginning."""
    start = len(raw) - len(raw.lstrip(b"\r\n")) if raw[:1] in (b"\n", b"\r") else 0
    found = _END.search(raw, start)
    end, body_at = (found.start() + 1, found.end()) if found else (len(raw), len(raw))
    if end - start <= LARGEST_HEAD:
        return Head(raw[start:end], body_at, cut=False)
    block, cut = _shorten(raw, start, end)
    return Head(block, body_at, cut)


def _shorten(raw: bytes, start: int, end: int) -> tuple[bytes, bool]:
    """The headers with long values cut, up to 1 MiB in all; and whether any had to be left out."""
    kept: list[bytes] = []
    size = 0
    for header in _HEADER.finditer(raw, start, end):
        if size > LARGEST_HEAD:
            return b"".join(kept), True
        kept.append(b"%s:%s\n" % (header[1][:LONGEST_VALUE], _without_end(header[2])))
        size += len(kept[-1])
    return b"".join(kept), False


def _without_end(value: bytes) -> bytes:
    """The value, cut one byte beyond the limit, so that it is still recognised as too long."""
    return value[: LONGEST_VALUE + 1].rstrip(b"\n")


def read_head(head: Head, only: frozenset[bytes] | None = None) -> ReadHead:
    """Decode the headers: names as they are, values unfolded, encoded words and charsets decoded.

    `only` are the names, in lower case, of headers that are of interest.
    """
    headers: list[tuple[str, str]] = []
    problems: dict[str, None] = {"the head is larger than 1 MiB": None} if head.cut else {}
    for name_bytes, value in _HEADER.findall(head.block):
        if only is not None and name_bytes.lower() not in only:
            continue
        name = name_bytes.decode("ascii")
        if len(value) > LONGEST_VALUE:
            problems[f"a header is longer than 64 KiB: {name[:60]}"] = None
        text = _value_of(name.lower(), value)
        if "=?" in text:
            text = readable_addresses(text) if name.lower() in ADDRESS_HEADERS else decode_words(text)
        headers.append((name, text))
    if not headers:
        problems["there is no header"] = None
    return ReadHead(tuple(headers), tuple(problems))


def _value_of(name: str, value: bytes) -> str:
    """The text of a value. A long address list is cut after a whole address: half of one may be another address."""
    text = value_text(value)
    return text.rpartition(",")[0] if len(value) > LONGEST_VALUE and name in ADDRESS_HEADERS else text


def value_text(value: bytes) -> str:
    """A raw value as unfolded text; encoded words are not decoded yet."""
    value = value[:LONGEST_VALUE]
    if b"\n" in value:
        value = _FOLD.sub(b"", value)
    value = value.strip(b" \t\r")
    if value.isascii():
        text = value.decode("ascii")
        return text.translate(_SMOOTH) if b"\0" in value or b"\r" in value else text
    return decode_text(value, None).text.translate(_SMOOTH)


def searchable(block: bytes) -> bytes:
    """A head prepared for `raw_values`: in lower case, with a line end before every line."""
    return b"\n" + block.lower()


def raw_values(search: bytes, block: bytes, name: bytes) -> list[str]:
    """Every value of one header, found without parsing the others. `search` is the head as `searchable` returns it.

    It finds what `read_head` finds: a name at the beginning of a line, blanks, a colon, the folded value.
    """
    found: list[str] = []
    wanted, at = b"\n" + name, 0
    while (at := search.find(wanted, at)) >= 0:
        if (header := _HEADER.match(block, at)) and len(header[1]) == len(name):
            found.append(_value_of(name.decode(), header[2]))
        at += len(wanted)
    return found
