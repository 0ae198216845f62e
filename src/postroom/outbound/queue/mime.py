"""Builds the mail that Postroom sends, replies and forwards, as seven-bit text. Pure.

Much of the input was written by a stranger, so no value is trusted: anything that could begin another header is removed
from what is quoted, and refused in what the user gave; and the finished head is parsed again and compared with what was
intended. Gmail sets its own Message-ID, so none is given. X-Postroom-Delivery identifies our mail; X-Postroom-Source
says what it is about, so that it is recognised after a restore has lost its id.
"""

import re
from base64 import encodebytes
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from email.charset import QP, Charset
from email.generator import BytesGenerator
from email.header import Header
from email.message import Message
from email.mime.multipart import MIMEMultipart
from email.mime.nonmultipart import MIMENonMultipart
from email.policy import compat32
from email.utils import format_datetime, formataddr
from html import escape
from io import BytesIO
from typing import Any
from uuid import UUID

from postroom.core.actions.parameters import LONGEST_SUBJECT, copies_of, is_address, recipients_of
from postroom.core.errors import BadInput
from postroom.core.mail.addresses import addresses
from postroom.core.mail.auto_reply import answer_goes_to
from postroom.core.mail.carrier import MARK, SOURCE
from postroom.core.mail.headers import Headers, values
from postroom.core.mail.references import thread_references
from postroom.outbound.queue.attachments import Attached, Attachment, given_attachments

MOST_HOPS = 20
LONGEST_LINE = 998
LONGEST_QUOTED = 1_000
LONGEST_AUTHOR = 100
# Of an attached file, in bytes.
LONGEST_NAME = 200
LONGEST_ENDING = 20
# Gmail's limit for a whole message, attachments included.
LARGEST = 36_700_160

_WIRE = compat32.clone(linesep="\r\n", mangle_from_=False)
_UTF8 = Charset("utf-8")
_UTF8.body_encoding = QP
# They join letters in some scripts, and are no control characters.
_JOINERS = frozenset("\u200c\u200d")
_BODY = re.compile(r"<body(?:\s[^>]{0,2000})?>", re.IGNORECASE)


NOTHING_ATTACHED = Attached()


@dataclass(frozen=True, slots=True)
class Original:
    """The message that is answered or forwarded."""

    sender: str
    subject: str
    headers: Headers = field(repr=False)
    text: str = field(default="", repr=False)
    attached: Attached = NOTHING_ATTACHED
    html: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Author:
    """The address and name in `From`."""

    address: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Built:
    """A finished mail: its recipients, its subject and the whole message."""

    recipients: tuple[str, ...]
    subject: str
    mime: str = field(repr=False)


def answer_address(original: Original) -> str:
    return answer_goes_to(original.sender, original.headers)


def build_reply(
    mark: UUID, own: Author, original: Original, parameters: Mapping[str, Any], now: datetime, source: str = ""
) -> Built:
    """An automatic reply in the original's conversation, marked so that no other machine replies to it."""
    to, cc = (_address(answer_address(original)),), tuple(_address(each) for each in copies_of(parameters))
    subject = one_line(str(parameters.get("subject") or "")) or _add_prefix("Re", original.subject)
    ids = thread_references(original.headers)
    thread = {} if not ids else {"In-Reply-To": ids[-1], "References": " ".join(ids)}
    head = {
        **_head(mark, own, to, cc, subject, now),
        **({SOURCE: source} if source else {}),
        **thread,
        "Auto-Submitted": "auto-replied",
        "X-Auto-Response-Suppress": "All",
    }
    files = given_attachments(parameters)
    return _build((*to, *cc), subject, head, _body(mark, str(parameters["text"]), parameters.get("html"), files))


def build_forward(
    mark: UUID, own: Author, original: Original, parameters: Mapping[str, Any], now: datetime, source: str = ""
) -> Built:
    """The original, as text and HTML, below the user's note, with its attachments, in a new conversation."""
    to = tuple(_address(each) for each in recipients_of(parameters))
    cc = tuple(_address(each) for each in copies_of(parameters))
    subject = one_line(str(parameters.get("subject") or "")) or _add_prefix("Fwd", original.subject)
    head = {
        **_head(mark, own, to, cc, subject, now),
        **({SOURCE: source} if source else {}),
        "Auto-Submitted": "auto-generated",
        "X-Loop": ", ".join([*hops(original.headers), own.address][-MOST_HOPS:]),
    }
    more = given_attachments(parameters)
    files = (*more, *original.attached.files)
    everyone = (*to, *cc)
    built = _build(everyone, subject, head, _forwarded_body(mark, original, original.attached, parameters, files))
    if len(built.mime) <= LARGEST:
        return built
    without = Attached(left_out=len(original.attached.files))
    return _build(everyone, subject, head, _forwarded_body(mark, original, without, parameters, more))


def hops(headers: Headers) -> list[str]:
    """The addresses that have forwarded this message before, as `X-Loop` lists them."""
    return [each for value in values(headers, "x-loop") for each in addresses(value) if is_address(each)][:MOST_HOPS]


def one_line(text: str, longest: int = LONGEST_SUBJECT) -> str:
    """The text without line breaks, control characters and marks that change the direction of writing."""
    seen = "".join(each if each.isprintable() or each in _JOINERS else " " for each in text[: 4 * longest])
    return " ".join(seen.split())[:longest].strip()


def _add_prefix(mark: str, subject: str) -> str:
    """The subject with the mark in front, once."""
    plain = one_line(subject, LONGEST_SUBJECT - len(mark) - 2)
    return plain if plain.lower().startswith(f"{mark.lower()}:") else f"{mark}: {plain}".strip()


def _head(mark: UUID, own: Author, to: Sequence[str], cc: Sequence[str], subject: str, now: datetime) -> dict[str, str]:
    return {
        "From": _author_field(own),
        "To": ", ".join(to),
        **({"Cc": ", ".join(cc)} if cc else {}),
        "Subject": subject,
        "Date": format_datetime(now),
        MARK: str(mark),
    }


def _author_field(own: Author) -> str:
    """The address after the name, which is quoted or in encoded words, so that it cannot become another address."""
    name = one_line(own.name, LONGEST_AUTHOR)
    if not name.isascii():
        # One encoded word has at most 75 characters.
        name = name.encode()[:45].decode("utf-8", "ignore").strip()
    return formataddr((name, _address(own.address))) if name else _address(own.address)


def _address(text: str) -> str:
    if not is_address(text) or not text.isascii():
        raise BadInput("to", "is not an address that every mail server accepts", "use one such as ada@example.com")
    return text


def _forwarded_body(
    mark: UUID, original: Original, attached: Attached, parameters: Mapping[str, Any], files: Sequence[Attachment]
) -> Message:
    note, note_html = str(parameters.get("note") or ""), str(parameters.get("html") or "")
    html = None
    if original.html or note_html:
        html = _forwarded_html(note_html or _as_html(note), original, attached)
    return _body(mark, _forwarded_text(note, original, attached), html, files)


def _forwarded_html(note_html: str, original: Original, attached: Attached) -> str:
    """Our text goes where the original's body begins, so that its styles still apply. The original is not changed: the
    recipient reads it in a mail program, which is made for mail of strangers."""
    quoted = "".join(f"<b>{name}:</b> {escape(value)}<br>\n" for name, value in _quoted_headers(original))
    said = "".join(f"<p>{escape(line)}</p>\n" for line in _left_out(attached))
    ours = f"{note_html}\n<p>---------- Forwarded message ----------<br>\n{quoted}</p>\n{said}"
    theirs = original.html if original.html is not None else _as_html(original.text)
    found = _BODY.search(theirs)
    at = 0 if found is None else found.end()
    return f"{theirs[:at]}{ours}{theirs[at:]}"


def _as_html(text: str) -> str:
    return escape(text).replace("\n", "<br>\n")


def _left_out(attached: Attached) -> list[str]:
    return [] if not attached.left_out else [f"[{attached.left_out} attachments are not sent along: too large.]"]


def _forwarded_text(note: str, original: Original, attached: Attached) -> str:
    quoted = [f"{name}: {value}" for name, value in _quoted_headers(original)]
    lines = [
        *([note, ""] if note else []),
        "---------- Forwarded message ----------",
        *quoted,
        "",
        original.text,
        *_left_out(attached),
    ]
    return "\n".join(lines) + "\n"


def _quoted_headers(original: Original) -> Iterable[tuple[str, str]]:
    for name in ("From", "Date", "Subject", "To", "Cc"):
        found = [one_line(value, LONGEST_QUOTED) for value in values(original.headers, name.lower())]
        if found and found[0]:
            yield name, found[0]


def _body(mark: UUID, text: str, html: object, files: Sequence[Attachment]) -> Message:
    """The simplest structure that holds all parts. No line of a part can be a boundary: no encoding contains `=_`."""
    body = _text(text, "plain")
    inline: list[Attachment] = []
    if html:
        inline = [each for each in files if each.content_id and f"cid:{each.content_id}" in str(html)]
        shown = _text(str(html), "html")
        if inline:
            shown = _multipart("related", f"=_r{mark.hex}", [shown, *map(_file, inline)])
        body = _multipart("alternative", f"=_a{mark.hex}", [body, shown])
    apart = [_file(replace(each, content_id="")) for each in files if each not in inline]
    return _multipart("mixed", f"=_m{mark.hex}", [body, *apart]) if apart else body


def _multipart(kind: str, boundary: str, parts: Sequence[Message]) -> Message:
    return MIMEMultipart(kind, boundary, list(parts))


def _text(text: str, kind: str) -> Message:
    seen = "".join(
        each if each.isprintable() or each in "\n\t" or each in _JOINERS else " "
        for each in text.replace("\r\n", "\n").replace("\r", "\n")
    )
    part = MIMENonMultipart("text", kind, charset="utf-8")
    part.set_payload(seen, _UTF8)
    return part


def _file(file: Attachment) -> Message:
    major, _, minor = file.mime_type.partition("/")
    part = MIMENonMultipart(major, minor)
    part.set_payload(encodebytes(file.content).decode("ascii"))
    part["Content-Transfer-Encoding"] = "base64"
    name = _short_name(file.filename)
    how = "inline" if file.content_id else "attachment"
    part.add_header("Content-Disposition", how, filename=name if name.isascii() else ("utf-8", "", name))
    if file.content_id:
        part["Content-ID"] = f"<{file.content_id}>"
    return part


def _short_name(filename: str) -> str:
    """The name cut so that it fits on a line when percent-encoded; its ending is kept."""
    name = one_line(filename, LONGEST_QUOTED)
    stem, dot, ending = name.rpartition(".")
    kept = f"{dot}{ending}" if stem and len(ending.encode()) <= LONGEST_ENDING else ""
    head = (name[: -len(kept)] if kept else name).encode()[: LONGEST_NAME - len(kept.encode())]
    return head.decode("utf-8", "ignore") + kept


def _build(to: tuple[str, ...], subject: str, head: Mapping[str, str], body: Message) -> Built:
    for name, value in head.items():
        body.add_header(name, _header(name, value))
    written = BytesIO()
    BytesGenerator(written, policy=_WIRE).flatten(body)
    raw = written.getvalue()
    _check(raw, body)
    return Built(to, subject, raw.decode("ascii"))


def _header(name: str, value: str) -> str:
    """The value as it is where possible; otherwise, or if it looks like encoded words, in encoded words."""
    if any(not (each.isprintable() or each in _JOINERS) for each in value):
        raise BadInput(name, "holds line breaks or control characters", "use one line")
    if value.isascii() and ("=?" not in value or name == "From"):
        return value
    return Header(value, "utf-8", header_name=name).encode()


def _check(raw: bytes, body: Message) -> None:
    """Check for seven bits, whole lines, and exactly the headers that were intended."""
    head, _, _ = raw.partition(b"\r\n\r\n")
    names = [line.partition(b":")[0] for line in head.split(b"\r\n") if line[:1] not in (b" ", b"\t")]
    too_long = any(len(line) > LONGEST_LINE for line in head.split(b"\r\n"))
    whole = raw.count(b"\r") == raw.count(b"\n") == raw.count(b"\r\n")
    if not raw.isascii() or not whole or too_long or names != [name.encode() for name, _ in body.items()]:
        raise BadInput("mail", "did not come out as intended", "report this as a bug; nothing was sent")
