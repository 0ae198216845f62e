"""A mail message as Postroom stores it, and how an envelope carries it.

A mail connector fills `payload.raw` with `to_raw`; the dispatcher reads an envelope with `read_mail`. Mail is hostile:
no header is trusted, and text is made storable before anything else sees it.
"""

import re
import unicodedata
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from postroom.core.errors import BadInput
from postroom.core.mail.dates import sent_at
from postroom.core.mail.headers import Headers, values
from postroom.core.mail.sender_doubt import DOUBTS, SenderDoubt
from postroom.core.mail.tiers import sender_address
from postroom.core.queue.envelope import Envelope

LONGEST_SUBJECT = 2000
LONGEST_SENDER = 512
LONGEST_BODY = 1_000_000
LONGEST_FILENAME = 255
LONGEST_TYPE = 127
# More combining marks on one letter than any language uses. Every character with a combining class is covered.
_HEAP = re.compile(r"([^\w\s\x00-\u02ff]{31,})")


@dataclass(frozen=True, slots=True)
class MailContent:
    """The content of one message, read from an envelope."""

    provider_message_id: str
    provider_thread_id: str
    sender: str
    subject: str
    headers: Headers
    labels: frozenset[str]
    snippet: str
    body_text: str
    has_attachment: bool
    sent_at: datetime
    size: int | None = None
    attachments: tuple[tuple[str, str], ...] | None = None
    """The name and the MIME type of each; None if the message came as metadata."""
    reply_to_mine: bool | None = None
    """Whether it answers a message that the user sent; None if the connector does not say."""
    sender_doubt: SenderDoubt | None = None


def to_raw(
    *,
    thread_id: str,
    headers: Headers,
    labels: frozenset[str],
    snippet: str,
    sent_at: datetime,
    history_id: str | None = None,
    size: int | None = None,
    reply_to_mine: bool | None = None,
    sender_doubt: SenderDoubt | None = None,
) -> dict[str, Any]:
    """The data of a message that the envelope carries beside the normalised text."""
    more = {"size": size, "reply_to_mine": reply_to_mine, "sender_doubt": sender_doubt}
    return {
        "thread_id": thread_id,
        "headers": [[storable(name), storable(value)] for name, value in headers],
        "labels": sorted(labels),
        "snippet": storable(snippet),
        "sent_at": sent_at.isoformat(),
        "history_id": history_id,
        **{name: value for name, value in more.items() if value is not None},
    }


def read_mail(envelope: Envelope) -> MailContent:
    """The message in an envelope. One that came as metadata has no body, and its normalised text is its subject."""
    raw = envelope.payload.raw if envelope.payload.raw is not None else _outline(envelope)
    headers = _headers(raw.get("headers", []))
    body = "" if envelope.payload.raw is None else envelope.payload.normalized_text
    subject = (values(headers, "subject") or [""])[0] if headers else envelope.payload.normalized_text
    return MailContent(
        provider_message_id=envelope.event.external_event_id,
        provider_thread_id=envelope.event.external_thread_id or envelope.event.external_event_id,
        sender=(sender_address(headers) or storable(envelope.sender.identity).lower())[:LONGEST_SENDER],
        subject=composed(storable(subject))[:LONGEST_SUBJECT],
        headers=headers,
        labels=frozenset(str(label) for label in _list(raw.get("labels", []), "labels")),
        snippet=storable(str(raw.get("snippet", ""))),
        body_text=composed(storable(body))[:LONGEST_BODY],
        has_attachment=bool(envelope.payload.attachments),
        sent_at=sent_at(raw.get("sent_at"), headers, envelope.event.observed_at),
        size=_size(raw.get("size")),
        attachments=None if envelope.payload.raw is None else _attachments(envelope),
        reply_to_mine=answers if isinstance(answers := raw.get("reply_to_mine"), bool) else None,
        sender_doubt=_doubt(raw.get("sender_doubt")),
    )


def _size(given: object) -> int | None:
    if not isinstance(given, int) or isinstance(given, bool):
        return None
    return given if 0 <= given < 2**63 else None


def _doubt(given: object) -> SenderDoubt | None:
    return next((each for each in DOUBTS if each == given), None)


def _attachments(envelope: Envelope) -> tuple[tuple[str, str], ...]:
    return tuple(
        (storable(each.filename or "")[:LONGEST_FILENAME], storable(each.mime_type or "")[:LONGEST_TYPE].lower())
        for each in envelope.payload.attachments
    )


def _outline(envelope: Envelope) -> dict[str, Any]:
    """The metadata of a message in the form of `payload.raw`."""
    metadata = envelope.payload.metadata
    if metadata is None:
        return {}
    known: dict[str, Any] = {
        "headers": [list(pair) for pair in metadata.headers],
        "labels": list(metadata.labels),
        "size": metadata.size,
        "reply_to_mine": metadata.reply_to_mine,
        "sender_doubt": metadata.sender_doubt,
    }
    return known if metadata.sent_at is None else {**known, "sent_at": metadata.sent_at.isoformat()}


def storable(text: str) -> str:
    """Text that both databases can hold: no NUL, no lone surrogates."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def composed(text: str) -> str:
    """The text in the form in which it is searched (NFC), however its accented letters were typed.

    Long runs of combining marks are left as they are: sorting them takes quadratic time.
    """
    if text.isascii():
        return text
    parts = _HEAP.split(text)
    return "".join(part if heap % 2 else unicodedata.normalize("NFC", part) for heap, part in enumerate(parts))


def _headers(given: object) -> Headers:
    headers: list[tuple[str, str]] = []
    for pair in _list(given, "headers"):
        match pair:
            case [str(name), str(value)]:
                headers.append((storable(name), storable(value)))
            case _:
                raise BadInput(
                    "payload.raw.headers", "is not a list of name and value pairs", "send [[name, value], ...]"
                )
    return tuple(headers)


def _list(given: object, field: str) -> list[object]:
    if not isinstance(given, list):
        raise BadInput(f"payload.raw.{field}", "is not a list", "send a list")
    return cast("list[object]", given)
