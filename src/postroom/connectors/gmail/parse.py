"""A Gmail message as an ingest.v1 envelope."""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from postroom.core.mail import storable, to_raw
from postroom.core.tiers import Assignment, Headers, Known, assign_tier, sender_address
from postroom.gmail.resources import Message, Part

LONGEST_TEXT = 1_000_000
LONGEST_IDENTITY = 512


def headers_of(message: Message) -> Headers:
    return tuple((storable(header.name), storable(header.value)) for header in message.headers)


def to_envelope(
    message: Message, endpoint_identity: str, known: Known, observed_at: datetime
) -> tuple[dict[str, Any], Assignment]:
    """Everything the switchboard needs, with the tier that the rules give; and the rule that gave it."""
    headers = headers_of(message)
    assignment = assign_tier(headers, known)
    envelope = {
        "schema_version": "ingest.v1",
        "source": {"channel": "email", "provider": "gmail", "endpoint_identity": endpoint_identity},
        "event": {
            "external_event_id": message.id,
            "external_thread_id": message.thread_id,
            "observed_at": observed_at.isoformat(),
        },
        "sender": {"identity": _identity(sender_address(headers))},
        "payload": {
            "raw": to_raw(
                thread_id=message.thread_id,
                headers=headers,
                labels=message.label_ids,
                snippet=message.snippet,
                sent_at=message.internal_date,
                history_id=str(message.history_id),
            ),
            "normalized_text": text_of(message),
            "attachments": [
                {"filename": storable(part.filename), "mime_type": storable(part.mime_type), "size": part.body.size}
                for part in _leaves(message.payload)
                if part.filename
            ],
        },
        "control": {
            "idempotency_key": f"gmail:{endpoint_identity}:{message.id}",
            "policy_tier": assignment.tier,
            "ingestion_tier": "full",
        },
    }
    return envelope, assignment


def _identity(address: str) -> str:
    """An address as ingest.v1 takes it: one line, not endless, and never empty."""
    return re.sub(r"[\x00-\x1f\x7f]", "?", address)[:LONGEST_IDENTITY].strip() or "unknown"


def text_of(message: Message) -> str:
    """The plain text of the message; without any, what Gmail shows as its beginning."""
    texts = [
        part.body.data.decode("utf-8", "replace")
        for part in _leaves(message.payload)
        if part.mime_type == "text/plain" and not part.filename and part.body.data is not None
    ]
    return storable("\n".join(texts) or message.snippet)[:LONGEST_TEXT]


def _leaves(part: Part | None) -> Iterator[Part]:
    if part is None:
        return
    if not part.parts:
        yield part
    for child in part.parts:
        yield from _leaves(child)
