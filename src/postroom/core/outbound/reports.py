"""Reads reports about mail that we sent: of delivery (RFC 3464, or a letter) and of complaints (ARF, RFC 5965).

Anyone can write such a report. The caller checks whether it is about a mail of ours and a recipient of that mail, by
the mark or the Message-ID of the original that it returns.
"""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple
from uuid import UUID

from postroom.core.mail.addresses import addresses, canonical
from postroom.core.mail.carrier import MARK
from postroom.core.mail.charsets import decode_text
from postroom.core.mail.headers import Headers, head_of, read_head, values, with_line_ends
from postroom.core.mail.html import html_text
from postroom.core.mail.mime import decoded_content
from postroom.core.mail.parts import Part, find_parts
from postroom.core.outbound.bounce_classes import BounceClass
from postroom.core.outbound.bounce_letters import (
    LetterRecipient,
    divided,
    is_by_mail_system,
    may_be_letter,
    phase_of,
    read_letter,
)
from postroom.core.outbound.replies import Reply, bounce_class, reply_of

LARGEST_REPORT = 1_048_576
"""The machine-readable part of a report comes first; the rest of a longer one is not needed."""
LARGEST_STATUS = 262_144
MOST_RECIPIENTS = 1_000

Action = Literal["failed", "delayed", "delivered", "relayed", "expanded"]

_STATUS = ("message/delivery-status", "message/global-delivery-status")
_FEEDBACK = "message/feedback-report"
_ORIGINALS = (
    "message/rfc822",
    "text/rfc822-headers",
    "message/rfc822-headers",
    "message/global",
    "message/global-headers",
)
_ACTIONS: dict[str, Action] = {
    "failed": "failed",
    "failure": "failed",
    "fail": "failed",
    "delayed": "delayed",
    "delivered": "delivered",
    "relayed": "relayed",
    "expanded": "expanded",
}
_WORD = re.compile(r"[a-z]+")
_REPORT = re.compile(
    r'\s*multipart/report\s*;.*\breport-type\s*=\s*"?(?:delivery-status|feedback-report)\b', re.IGNORECASE | re.DOTALL
)
_QUOTED_ID = re.compile(rb"^[ \t>]*(?:X-Original-)?Message-ID:\s*(<[!-~]{1,996}>)", re.IGNORECASE | re.MULTILINE)
_QUOTED_MARK = re.compile(rb"^[ \t>]*X-Postroom-Delivery:[ \t]*([0-9a-f-]{36})\b", re.IGNORECASE | re.MULTILINE)
_BLANK_LINES = re.compile(rb"(?:\r?\n[ \t]*){2,}")
_CODE = re.compile(rb"\s*([245][0-9]{2})(?:[ -]|$)")
_DOTTED = re.compile(r"[245]\.[0-9]{1,3}\.[0-9]{1,3}")
_CHARACTER = re.compile(r"\\x\{([0-9A-Fa-f]{1,6})\}")


class Original(NamedTuple):
    """The part of the reported mail that the report returns. `mark` is our own id of it."""

    message_id: str | None = None
    mark: UUID | None = None


class ReportedRecipient(NamedTuple):
    """The fate of a recipient, in canonical form. `reply` is the last server's reply, as far as the report has it."""

    address: str
    action: Action
    reply: Reply
    bounce_class: BounceClass | None


class DeliveryReport(NamedTuple):
    original: Original
    recipients: tuple[ReportedRecipient, ...]


class FeedbackReport(NamedTuple):
    """A complaint of a recipient, passed on by its provider. `kind` is `abuse` in most."""

    original: Original
    kind: str
    recipients: tuple[str, ...]


def read_report(raw: bytes) -> DeliveryReport | FeedbackReport | None:
    """The report in a message; None if it is none, or says nothing about any recipient or mail."""
    raw = with_line_ends(raw)
    head = head_of(raw)
    root, _ = find_parts(raw, head.block, head.body_at)
    parts = list(_leaves(root))
    original = _original(parts)
    for part in parts:
        content = _decode_part(part)
        if part.fields.content_type in _STATUS and (found := tuple(_recipients(content))):
            return DeliveryReport(original if original != Original() else _named_original(content), found)
        if part.fields.content_type == _FEEDBACK:
            return _feedback(content, original)
    headers = read_head(head).headers
    return _letter(headers, parts, original) if may_be_letter(headers) else None


def may_be_report(headers: Headers) -> bool:
    """Whether a message may be one, by its head: it calls itself a report, or a mail system wrote it."""
    kinds = values(headers, "content-type")
    return (bool(kinds) and _REPORT.match(kinds[0]) is not None) or is_by_mail_system(headers)


def _leaves(part: Part) -> Iterator[Part]:
    if part.is_multipart:
        for each in part.parts:
            yield from _leaves(each)
    else:
        yield part


def _decode_part(part: Part) -> bytes:
    return (decoded_content(part.fields, part.content[: 2 * LARGEST_STATUS]) or b"")[:LARGEST_STATUS]


def _original(parts: list[Part]) -> Original:
    for part in parts:
        if part.fields.content_type in _ORIGINALS:
            headers = _headers(_decode_part(part))
            marks = [mark for value in values(headers, MARK.lower()) if (mark := _uuid(value)) is not None]
            ids = values(headers, "message-id")
            return Original(ids[0].strip()[:998] if ids else None, marks[0] if marks else None)
    return Original()


def _named_original(content: bytes) -> Original:
    """The original that a report names without returning it, or that a letter quotes."""
    marks = [mark for found in _QUOTED_MARK.finditer(content) if (mark := _uuid(found[1].decode())) is not None]
    ids = _QUOTED_ID.search(content)
    return Original(ids[1].decode("ascii", "replace")[:998] if ids else None, marks[0] if marks else None)


def _letter(headers: Headers, parts: list[Part], original: Original) -> DeliveryReport | None:
    """The bounce in the text before the original."""
    texts: list[str] = []
    for part in parts:
        if part.fields.content_type in _ORIGINALS:
            break
        if part.fields.content_type in ("text/plain", "text/html"):
            text = decode_text(_decode_part(part), part.fields.charset).text
            texts.append(text if part.fields.content_type == "text/plain" else html_text(text))
    text, quoted = divided("\n".join(texts))
    found = read_letter(headers, text)
    if not found:
        return None
    if original == Original():
        original = _named_original(quoted.encode())
    if original == Original():
        answered = values(headers, "in-reply-to")
        original = Original(answered[0].strip()[:998] or None if answered else None)
    return DeliveryReport(original, tuple(map(_told_by_letter, found)))


def _told_by_letter(recipient: LetterRecipient) -> ReportedRecipient:
    action: Action = "failed" if recipient.failed else "delayed"
    return ReportedRecipient(recipient.address, action, recipient.reply, bounce_class(recipient.reply))


def _recipients(status: bytes) -> Iterator[ReportedRecipient]:
    """A delivery status has a group of fields about the mail, then one for each recipient."""
    for group in _BLANK_LINES.split(status.strip())[: MOST_RECIPIENTS + 1]:
        headers = _headers(group)
        named = values(headers, "original-recipient") + values(headers, "final-recipient")
        address = next((found for value in named if (found := _typed_address(value)) is not None), None)
        action = _action(headers)
        if address is None or action is None:
            continue
        reply = _reply(group, headers, action)
        why = bounce_class(reply) if action in ("failed", "delayed") else None
        yield ReportedRecipient(address, action, reply, why)


def _action(headers: Headers) -> Action | None:
    """The action. Some write `failure`, some none at all, but a status that says never."""
    said = [found[0] for value in values(headers, "action") if (found := _WORD.match(value.strip().lower()))]
    if not said and any(value.strip().startswith("5.") for value in values(headers, "status")):
        return "failed"
    return _ACTIONS.get(said[0]) if said else None


def _reply(group: bytes, headers: Headers, action: Action) -> Reply:
    """The diagnostic code, or else the status alone."""
    status = next((found[0] for value in values(headers, "status") if (found := _DOTTED.match(value))), None)
    host = next((_after_type(value)[:255] for value in values(headers, "remote-mta")), None)
    diagnostic = next((_after_type(value).encode() for value in values(headers, "diagnostic-code")), b"")
    phase = phase_of(diagnostic.decode("utf-8", "replace"))
    if coded := _CODE.match(diagnostic):
        reply = reply_of(int(coded[1]), [diagnostic[coded.end() :]], host, phase)
        return reply if reply.enhanced is not None or status is None else _with_status(reply, status)
    severity = {"failed": 5, "delayed": 4}.get(action, 2)
    said = reply_of(severity * 100, [diagnostic], host, phase)
    return said._replace(code=None, enhanced=status or f"{severity}.0.0")


def _with_status(reply: Reply, status: str) -> Reply:
    """The reply with the status of the report, unless that alone would be proof against the address.

    Some reporters make `5.1.1` of every 550: the server's own reply counts more.
    """
    told = reply._replace(enhanced=status)
    is_made_up = reply.text and bounce_class(told) is BounceClass.HARD and bounce_class(reply) is not BounceClass.HARD
    return reply if is_made_up else told


def _feedback(content: bytes, original: Original) -> FeedbackReport | None:
    headers = _headers(content)
    kinds = [value.strip().lower() for value in values(headers, "feedback-type")]
    if not kinds or not re.fullmatch(r"[a-z0-9-]{1,40}", kinds[0]):
        return None
    named = values(headers, "original-rcpt-to") + values(headers, "removal-recipient")
    recipients = [address for value in named[:MOST_RECIPIENTS] for address in addresses(value)]
    return FeedbackReport(original, kinds[0], tuple(dict.fromkeys(recipients)))


def _headers(block: bytes) -> Headers:
    return read_head(head_of(block + b"\n\n")).headers


def _typed_address(value: str) -> str | None:
    """The address in `rfc822; ada@example.org`, or in `utf-8; \\x{E4}da@example.org` (RFC 6533)."""
    text = _after_type(value).strip("<>")
    return canonical(_CHARACTER.sub(lambda found: _character(int(found[1], 16)), text))


def _character(point: int) -> str:
    return chr(point) if point <= 0x10FFFF and not 0xD800 <= point <= 0xDFFF else "\ufffd"


def _after_type(value: str) -> str:
    kind, semicolon, rest = value.partition(";")
    return (rest if semicolon else kind).strip()


def _uuid(value: str) -> UUID | None:
    try:
        return UUID(value.strip())
    except ValueError:
        return None
