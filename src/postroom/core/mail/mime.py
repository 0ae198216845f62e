"""Parses a raw message (RFC 822): headers, text, attachments, and problems.

Mail is hostile. Every limit is checked before the bytes beyond it are touched: 64 KiB for a header value, 1 MiB for the
head, 50 levels, 1,000 parts, 50 MiB decoded, a million characters of text. A message that is malformed or beyond a
limit still yields its headers and all other readable parts; `problems` names the missing ones. Nothing here raises.

    parsed = parse_message(raw)
    assign_tier(parsed.headers, known)
"""

import binascii
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from postroom.core.mail.charsets import decode_text
from postroom.core.mail.fields import Fields, safe_filename
from postroom.core.mail.headers import Headers, head_of, read_head, with_line_ends
from postroom.core.mail.html import html_text
from postroom.core.mail.parts import Part, find_parts
from postroom.core.mail.words import decode_base64

LARGEST_MESSAGE = 100 * 1024 * 1024
LARGEST_DECODED = 50 * 1024 * 1024
LONGEST_TEXT = 1_000_000
LONGEST_CHARACTER = 4
LONGEST_ENCODED = 3 * LONGEST_CHARACTER
IDENTITY = frozenset({"", "7bit", "8bit", "binary"})
UUENCODE = frozenset({"x-uuencode", "uuencode", "x-uue", "uue"})
_NOT_BASE64 = b"\r\n \t="
_LINE_END = re.compile(r"\r++\n")
# Content that only claims to be text, such as a picture, must not move cursors or hide lines.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_PRINTED = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0)), "\ufffd") | {9: "\t", 10: "\n", 12: "\n", 13: "\n"}


class Attached(NamedTuple):
    """An attachment, as far as it is known without opening it; the name is safe to show and to use for a file."""

    filename: str
    mime_type: str
    size: int


@dataclass(frozen=True, slots=True)
class ParsedMessage:
    """A parsed message. `mime_types` are those of the message itself and then of all its parts."""

    headers: Headers
    text: str = ""
    attachments: tuple[Attached, ...] = ()
    mime_types: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def parse_message(raw: bytes) -> ParsedMessage:
    """Parse as much of the message as possible."""
    raw = with_line_ends(raw)
    head = head_of(raw)
    headers, problems = read_head(head)
    if len(raw) > LARGEST_MESSAGE:
        return ParsedMessage(headers, problems=(*problems, "it is larger than 100 MiB; only its headers were read"))
    try:
        root, structure = find_parts(raw, head.block if headers else b"", head.body_at if headers else 0)
        return read_parts(root, headers, (*problems, *structure))
    except Exception as error:
        # No known message gets here. Should one do so, its headers must not be lost.
        return ParsedMessage(headers, problems=(*problems, f"its body cannot be read ({type(error).__name__})"))


def read_parts(root: Part, headers: Headers = (), problems: Iterable[str] = ()) -> ParsedMessage:
    """The message with these headers, and the problems of its head: the text that a reader is meant to see, and
    everything else as attachments.
    """
    reading = _Reading()
    text = reading.text_of(root).text.strip()
    if _CONTROL.search(text):
        text = text.translate(_PRINTED)
    found = (tuple(reading.attachments), tuple(reading.mime_types), (*problems, *reading.problems))
    return ParsedMessage(headers, text, *found)


class _Text:
    """A text of a part. HTML is converted on first use: mostly there is a plain text beside it, which is preferred."""

    __slots__ = ("_is_html", "_text", "is_plain")

    def __init__(self, text: str, *, is_plain: bool, is_html: bool = False) -> None:
        self._text, self.is_plain, self._is_html = text, is_plain, is_html

    @property
    def text(self) -> str:
        if self._is_html:
            self._text, self._is_html = html_text(self._text), False
        return self._text


NOTHING = _Text("", is_plain=False)


class _Reading:
    """Reads the parts of one message in order, within its limits."""

    def __init__(self) -> None:
        self.attachments: list[Attached] = []
        self.mime_types: list[str] = []
        self.problems: dict[str, None] = {}
        self._text_left = LONGEST_TEXT
        self._decoded = 0

    def text_of(self, part: Part) -> _Text:
        self.mime_types.append(part.fields.content_type)
        if part.parts:
            return self._text_of_parts(part)
        fields = part.fields
        is_text = fields.content_type in ("text/plain", "text/html") or (part.is_multipart and not fields.boundary)
        if is_text and not fields.attached and not fields.filename:
            is_html = fields.content_type == "text/html"
            return _Text(self._words(part), is_plain=not is_html, is_html=is_html)
        if not part.is_multipart or part.content:
            self._attach(part)
        return NOTHING

    def _text_of_parts(self, part: Part) -> _Text:
        """The first plain text of alternatives, else their last text; for any other multipart, all texts joined."""
        texts = [self.text_of(each) for each in part.parts]
        if part.fields.content_type == "multipart/alternative":
            plain = (text for text in texts if text.is_plain and text.text.strip())
            return next(plain, None) or next((text for text in reversed(texts) if text.text.strip()), NOTHING)
        found = [text for text in texts if text.text.strip()]
        return _Text("\n\n".join(text.text for text in found), is_plain=any(text.is_plain for text in found))

    def _words(self, part: Part) -> str:
        """The text of one part as written, up to the rest of the limit."""
        if not self._may_decode(part):
            return ""
        room = self._text_left
        content = decoded_content(part.fields, part.content[: room * LONGEST_ENCODED])
        if content is None:
            self.problems[f"the encoding {part.fields.encoding[:40]!r} is unknown"] = None
            content = part.content
        text, repaired = decode_text(content[: room * LONGEST_CHARACTER], part.fields.charset)
        if repaired:
            self.problems[f"the charset {(part.fields.charset or 'us-ascii')[:40]!r} does not fit the text"] = None
        if len(text) > room or len(part.content) > room * LONGEST_ENCODED:
            self.problems["it has more than a million characters of text"] = None
            text = text[:room]
        self._text_left -= len(text)
        return _LINE_END.sub("\n", text) if "\r" in text and part.fields.content_type != "text/html" else text

    def _attach(self, part: Part) -> None:
        name = safe_filename(part.fields.filename) or "unnamed"
        size = part.size
        if size is None:
            size = decoded_size(part.fields, part.content) if self._may_decode(part) else len(part.content)
        self.attachments.append(Attached(name, part.fields.content_type, size))

    def _may_decode(self, part: Part) -> bool:
        """Whether the part fits the limit. Its encoded size is an upper bound of the decoded one."""
        size = len(part.content) * (3 if part.fields.encoding == "base64" else 4) // 4
        if self._decoded + size > LARGEST_DECODED:
            self.problems["it has more than 50 MiB decoded"] = None
            return False
        self._decoded += size
        return True


def decoded_content(fields: Fields, content: bytes) -> bytes | None:
    """The content without its transfer encoding; None when the encoding is unknown."""
    if fields.encoding in IDENTITY:
        return content
    match fields.encoding:
        case "base64":
            return decode_base64(content)
        case "quoted-printable":
            return binascii.a2b_qp(content)
        case encoding if encoding in UUENCODE:
            return _decode_uu(content)
        case _:
            return None


def decoded_size(fields: Fields, content: bytes) -> int:
    """The decoded size of the content in bytes; for uuencode, an estimate."""
    match fields.encoding:
        case "base64":
            return len(content.translate(None, _NOT_BASE64)) * 3 // 4
        case "quoted-printable":
            return len(binascii.a2b_qp(content))
        case encoding if encoding in UUENCODE:
            return len(content) * 45 // 62
        case _:
            return len(content)


def _decode_uu(content: bytes) -> bytes:
    lines: list[bytes] = []
    for line in content.splitlines():
        if line.startswith((b"begin ", b"end")) or not line:
            continue
        try:
            lines.append(binascii.a2b_uu(line))
        except binascii.Error:
            continue
    return b"".join(lines)
