"""A mail message as Postroom keeps it, and how it is carried in an envelope.

`to_raw` is what a mail connector puts into `payload.raw`; `read_mail` is what the dispatcher makes of an envelope. Mail
is hostile: nothing here trusts a header, and text is made storable before anything else sees it.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from postroom.core.errors import BadInput
from postroom.core.mail.tiers import Headers, sender_address, values
from postroom.core.queue.envelope import Envelope

LONGEST_SUBJECT = 2000
LONGEST_SENDER = 512
LONGEST_BODY = 1_000_000
# More marks on one letter than any language writes. Nothing with a combining class is outside of this.
_HEAP = re.compile(r"([^\w\s\x00-\u02ff]{31,})")


@dataclass(frozen=True, slots=True)
class MailContent:
    """One message, read."""

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


def to_raw(
    *,
    thread_id: str,
    headers: Headers,
    labels: frozenset[str],
    snippet: str,
    sent_at: datetime,
    history_id: str | None = None,
) -> dict[str, Any]:
    """A message's own data, as the envelope carries it beside the normalised text."""
    return {
        "thread_id": thread_id,
        "headers": [[storable(name), storable(value)] for name, value in headers],
        "labels": sorted(labels),
        "snippet": storable(snippet),
        "sent_at": sent_at.isoformat(),
        "history_id": history_id,
    }


def read_mail(envelope: Envelope) -> MailContent:
    """The message in an envelope. Of one that came as metadata there is no body, and its text is its subject."""
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
        sent_at=_sent_at(raw, envelope.event.observed_at),
    )


def _outline(envelope: Envelope) -> dict[str, Any]:
    """What came of the metadata, as `payload.raw` would have it."""
    metadata = envelope.payload.metadata
    if metadata is None:
        return {}
    known: dict[str, Any] = {"headers": [list(pair) for pair in metadata.headers], "labels": list(metadata.labels)}
    return known if metadata.sent_at is None else {**known, "sent_at": metadata.sent_at.isoformat()}


def storable(text: str) -> str:
    """Text that both databases can hold: no NUL, no lone surrogates."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def composed(text: str) -> str:
    """Letters with marks in the one form in which they are searched for (NFC), however they were typed.

    Heaps of marks stay as they are: to put them in order takes a time that grows with the square of their number.
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
                raise BadInput("payload.raw.headers", "is no list of name and value pairs", "send [[name, value], ...]")
    return tuple(headers)


def _list(given: object, field: str) -> list[object]:
    if not isinstance(given, list):
        raise BadInput(f"payload.raw.{field}", "is no list", "send a list")
    return cast("list[object]", given)


def _sent_at(raw: Mapping[str, Any], observed_at: datetime) -> datetime:
    """When it was sent; when that makes no sense, when it was seen."""
    try:
        moment = datetime.fromisoformat(str(raw.get("sent_at", "")))
        return moment.astimezone(UTC) if moment.tzinfo is not None else observed_at
    except (ValueError, OverflowError):
        return observed_at
