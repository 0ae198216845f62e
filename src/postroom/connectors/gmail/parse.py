"""A Gmail message as an ingest.v1 envelope: read, given its tiers, and carried whole or as the gist of its headers.

Whatever is wrong with a message is said in `payload.raw.problems`; nothing here raises for a message's sake.
"""

import base64
import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from postroom.core.mail.addresses import LONGEST_VALUE, readable_addresses, shortened
from postroom.core.mail.fields import Fields, read_fields
from postroom.core.mail.headers import ADDRESS_HEADERS, LARGEST_HEAD, Headers, values
from postroom.core.mail.ingestion import Decision, IngestionFacts, IngestionPolicy
from postroom.core.mail.message import storable, to_raw
from postroom.core.mail.mime import ParsedMessage, parse_message, read_parts
from postroom.core.mail.parts import MOST_PARTS, Part
from postroom.core.mail.tiers import Assignment, Known, assign_tier, sender_address
from postroom.core.mail.words import decode_words
from postroom.core.queue.envelope import MOST_ATTACHMENTS
from postroom.gmail.resources import Header, Message
from postroom.gmail.resources import Part as GmailPart

LONGEST_IDENTITY = 512
LONGEST_GIST = 2000
MOST_GIST_HEADERS = 200
LARGEST_KEPT_RAW = 5 * 1024 * 1024
EVERYTHING = IngestionPolicy()
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class PreparedMessage:
    """A message that is ready to be handed in. There is no envelope for one that the policy skips."""

    id: str
    envelope: dict[str, Any] | None
    assignment: Assignment
    decision: Decision


def prepare(
    message: Message,
    endpoint_identity: str,
    known: Known,
    observed_at: datetime,
    policy: IngestionPolicy = EVERYTHING,
    letter: ParsedMessage | None = None,
) -> PreparedMessage:
    """Everything the switchboard needs, with the tiers that the rules give."""
    letter = letter or parsed_from(message)
    assignment = assign_tier(letter.headers, known)
    decision = policy.decide(IngestionFacts.of(letter))
    envelope = None
    if decision.tier != "skip":
        envelope = {
            "schema_version": "ingest.v1",
            "source": {"channel": "email", "provider": "gmail", "endpoint_identity": endpoint_identity},
            "event": {
                "external_event_id": message.id,
                "external_thread_id": message.thread_id or None,
                "observed_at": observed_at.isoformat(),
            },
            "sender": {"identity": _identity(sender_address(letter.headers))},
            "payload": _whole(message, letter) if decision.tier == "full" else _gist(message, letter),
            "control": {
                "idempotency_key": f"gmail:{endpoint_identity}:{message.id}",
                "policy_tier": assignment.tier,
                "ingestion_tier": decision.tier,
            },
        }
    return PreparedMessage(message.id, envelope, assignment, decision)


def parsed_from(message: Message) -> ParsedMessage:
    """The message, read: from Gmail's parts, or from its raw bytes where those are what came."""
    if message.raw is not None:
        return parse_message(message.raw)
    headers, problems = headers_of(message)
    if message.payload is None:
        return ParsedMessage(headers, problems=(*problems, "it came without its content"))
    try:
        body = read_parts(_Parts().part_of(message.payload))
    except Exception as error:
        # No message is known that comes here. Should there be one, its headers must not be lost with it.
        return ParsedMessage(headers, problems=(*problems, f"its body cannot be read ({type(error).__name__})"))
    return ParsedMessage(headers, body.text, body.attachments, body.mime_types, (*problems, *body.problems))


def headers_of(message: Message) -> tuple[Headers, tuple[str, ...]]:
    """The headers, readable and within the limits of `core.mime_headers`; and what had to be left out."""
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
    """Gmail's tree of parts as `core.mime` reads it: contents are decoded already, and text is UTF-8."""

    def __init__(self) -> None:
        self._left = MOST_PARTS

    def part_of(self, part: GmailPart) -> Part:
        self._left -= 1
        fields = _fields(part)
        # A message within a message is an attachment, and is not entered.
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


def _whole(message: Message, letter: ParsedMessage) -> dict[str, Any]:
    raw = to_raw(
        thread_id=message.thread_id,
        headers=letter.headers,
        labels=message.label_ids,
        snippet=message.snippet,
        sent_at=message.internal_date,
        history_id=str(message.history_id),
    )
    problems = list(letter.problems)
    if len(letter.attachments) > MOST_ATTACHMENTS:
        problems.append(f"it has more than {MOST_ATTACHMENTS:,} attachments")
    if problems:
        raw["problems"] = [storable(problem) for problem in problems]
    if message.raw is not None and len(message.raw) <= LARGEST_KEPT_RAW:
        raw["rfc822"] = base64.b64encode(message.raw).decode("ascii")
    return {
        "raw": raw,
        "normalized_text": storable(letter.text or message.snippet),
        "attachments": [
            {"filename": storable(each.filename), "mime_type": storable(each.mime_type), "size": max(each.size, 0)}
            for each in letter.attachments[:MOST_ATTACHMENTS]
        ],
    }


def _gist(message: Message, letter: ParsedMessage) -> dict[str, Any]:
    """What is kept of a message as metadata: its subject, on one line, and what rules look at; nothing of its text."""
    subject = " ".join((values(letter.headers, "subject") or [""])[0].split())
    return {
        "raw": None,
        "normalized_text": storable(subject)[:LONGEST_GIST],
        "metadata": {
            "headers": [
                [storable(name)[:LONGEST_GIST], storable(value)[:LONGEST_GIST]]
                for name, value in letter.headers[:MOST_GIST_HEADERS]
            ],
            "labels": sorted(message.label_ids),
            "sent_at": message.internal_date.isoformat(),
        },
        "attachments": [],
    }


def _identity(address: str) -> str:
    """An address as ingest.v1 takes it: one line, not endless, and never empty."""
    return _CONTROL.sub("?", storable(address))[:LONGEST_IDENTITY].strip() or "unknown"
