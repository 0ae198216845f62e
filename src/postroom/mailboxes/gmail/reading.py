"""Parses a Gmail message: its headers, text and attachments, from Gmail's parts or from its raw bytes.

Faults of a message are listed in its `problems`; no message makes anything here raise.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from postroom.core.mail.addresses import LONGEST_VALUE, readable_addresses, shortened
from postroom.core.mail.fields import Fields, read_fields
from postroom.core.mail.headers import ADDRESS_HEADERS, LARGEST_HEAD, Headers
from postroom.core.mail.message import storable
from postroom.core.mail.mime import ParsedMessage, parse_message, read_parts
from postroom.core.mail.parts import MOST_PARTS, Part
from postroom.core.mail.words import decode_words

if TYPE_CHECKING:
    from postroom.mailboxes.gmail.resources import GmailPart, Header, Message


def parsed_from(message: Message) -> ParsedMessage:
    """The parsed message: from Gmail's parts, or from its raw bytes if those were fetched."""
    if message.raw is not None:
        return parse_message(message.raw)
    headers, problems = headers_of(message)
    if message.payload is None:
        return ParsedMessage(headers, problems=(*problems, "it came without its content"))
    try:
        return read_parts(_Parts().part_of(message.payload), headers, problems)
    except Exception as error:
        # No known message gets here. If one does, its headers must not be lost.
        return ParsedMessage(headers, problems=(*problems, f"its body cannot be read ({type(error).__name__})"))


def readable_headers(message: Message) -> Headers:
    """The headers, from either source."""
    return headers_of(message)[0] if message.raw is None else parse_message(message.raw).headers


def headers_of(message: Message) -> tuple[Headers, tuple[str, ...]]:
    """The headers, decoded and within the limits of `core/mail/headers.py`, and what was left out."""
    found: list[tuple[str, str]] = []
    problems: dict[str, None] = {}
    size = 0
    for header in message.headers:
        if size > LARGEST_HEAD:
            problems["the head is larger than 1 MiB"] = None
            break
        if len(header.value) > LONGEST_VALUE:
            problems[f"a header is longer than 64 KiB: {header.name[:60]}"] = None
        found.append((storable(header.name[:LONGEST_VALUE]), _readable(header)))
        size += len(header.name) + min(len(header.value), LONGEST_VALUE)
    if not found:
        problems["there is no header"] = None
    return tuple(found), tuple(problems)


def _readable(header: Header) -> str:
    is_of_addresses = header.name.lower() in ADDRESS_HEADERS
    value = shortened(header.value, LONGEST_VALUE) if is_of_addresses else header.value[:LONGEST_VALUE]
    if "=?" in value:
        value = readable_addresses(value) if is_of_addresses else decode_words(value)
    return storable(value)


class _Parts:
    """Gmail's tree of parts in the form of `core/mail/mime.py`: contents are decoded already, and text is UTF-8."""

    def __init__(self) -> None:
        self._left = MOST_PARTS

    def part_of(self, part: GmailPart) -> Part:
        self._left -= 1
        fields = _fields(part)
        # A message within a message is an attachment, and is not parsed.
        if not part.mime_type.lower().startswith("multipart/"):
            return Part(fields, part.body.data or b"", size=max(part.body.size, 0))
        inner: list[Part] = []
        for child in part.parts:
            if self._left <= 0:
                break
            inner.append(self.part_of(child))
        return Part(fields, b"", inner)


def _fields(part: GmailPart) -> Fields:
    disposition = next((each.value for each in part.headers if each.name.lower() == "content-disposition"), "")
    fields = read_fields(part.mime_type, "", disposition)
    return replace(fields, charset="utf-8", filename=part.filename or fields.filename)
