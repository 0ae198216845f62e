"""Builds the ingest.v1 envelope of a message, with its tiers: in full, or as metadata.

Faults of a message are listed in `payload.raw.problems`; no message makes anything here raise.
"""

import base64
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from postroom.core.mail.accounts import provider_of
from postroom.core.mail.headers import values
from postroom.core.mail.ingestion import IngestionDecision, IngestionFacts, IngestionPolicy
from postroom.core.mail.message import storable, to_raw
from postroom.core.mail.mime import ParsedMessage
from postroom.core.mail.sender_doubt import SenderDoubt, sender_doubt
from postroom.core.mail.tiers import Assignment, Known, answers_user, assign_tier, sender_address
from postroom.core.queue.envelope import MOST_ATTACHMENTS, ON_DEMAND
from postroom.mailboxes.following.source import SourceMessage

LONGEST_IDENTITY = 512
LONGEST_GIST = 2000
MOST_GIST_HEADERS = 200
LARGEST_KEPT_RAW = 5 * 1024 * 1024
EVERYTHING = IngestionPolicy()
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class PreparedMessage:
    """A message ready to be ingested. One that the policy skips has no envelope."""

    id: str
    envelope: dict[str, Any] | None
    assignment: Assignment
    decision: IngestionDecision


def prepare(
    message: SourceMessage,
    endpoint_identity: str,
    known: Known,
    observed_at: datetime,
    policy: IngestionPolicy = EVERYTHING,
    parsed: ParsedMessage | None = None,
    *,
    on_demand: bool = False,
    backfill_job_id: UUID | None = None,
) -> PreparedMessage:
    """Build everything the switchboard needs, with the tiers that the rules give. `on_demand` marks mail that is not
    live; `backfill_job_id` is the backfill that fetches it.
    """
    parsed = parsed or message.parsed()
    assignment = assign_tier(parsed.headers, known)
    decision = policy.decide(IngestionFacts.of(parsed))
    envelope, provider = None, provider_of(endpoint_identity)
    if decision.tier != "skip":
        envelope = {
            "schema_version": "ingest.v1",
            "source": {"channel": "email", "provider": provider, "endpoint_identity": endpoint_identity},
            "event": {
                "external_event_id": message.id,
                "external_thread_id": message.thread_id or None,
                "observed_at": observed_at.isoformat(),
                **({"kind": ON_DEMAND} if on_demand else {}),
            },
            "sender": {"identity": _identity(sender_address(parsed.headers))},
            "payload": _content(message, parsed, known, decision),
            "control": {
                "idempotency_key": f"{provider}:{endpoint_identity}:{message.id}",
                "policy_tier": assignment.tier,
                "ingestion_tier": decision.tier,
                **({} if backfill_job_id is None else {"backfill_job_id": str(backfill_job_id)}),
            },
        }
    return PreparedMessage(message.id, envelope, assignment, decision)


def _content(
    message: SourceMessage, parsed: ParsedMessage, known: Known, decision: IngestionDecision
) -> dict[str, Any]:
    answers, doubt = answers_user(parsed.headers, known), sender_doubt(parsed.headers, known.own_hosts)
    return (_whole if decision.tier == "full" else _gist)(message, parsed, answers, doubt)


def _whole(
    message: SourceMessage, parsed: ParsedMessage, reply_to_mine: bool, doubt: SenderDoubt | None
) -> dict[str, Any]:
    raw = to_raw(
        thread_id=message.thread_id,
        headers=parsed.headers,
        labels=message.label_ids,
        snippet=message.snippet,
        sent_at=message.internal_date,
        history_id=str(message.history_id),
        size=_size(message),
        reply_to_mine=reply_to_mine,
        sender_doubt=doubt,
    )
    problems = list(parsed.problems)
    if len(parsed.attachments) > MOST_ATTACHMENTS:
        problems.append(f"it has more than {MOST_ATTACHMENTS:,} attachments")
    if problems:
        raw["problems"] = [storable(problem) for problem in problems]
    if message.raw is not None and len(message.raw) <= LARGEST_KEPT_RAW:
        raw["rfc822"] = base64.b64encode(message.raw).decode("ascii")
    return {
        "raw": raw,
        "normalized_text": storable(parsed.text or message.snippet),
        "attachments": [
            {"filename": storable(each.filename), "mime_type": storable(each.mime_type), "size": max(each.size, 0)}
            for each in parsed.attachments[:MOST_ATTACHMENTS]
        ],
    }


def _gist(
    message: SourceMessage, parsed: ParsedMessage, reply_to_mine: bool, doubt: SenderDoubt | None
) -> dict[str, Any]:
    """A message as metadata: its subject on one line, and what rules look at; nothing of its text."""
    subject = " ".join((values(parsed.headers, "subject") or [""])[0].split())
    return {
        "raw": None,
        "normalized_text": storable(subject)[:LONGEST_GIST],
        "metadata": {
            "headers": [
                [storable(name)[:LONGEST_GIST], storable(value)[:LONGEST_GIST]]
                for name, value in parsed.headers[:MOST_GIST_HEADERS]
            ],
            "labels": sorted(message.label_ids),
            "sent_at": message.internal_date.isoformat(),
            "size": _size(message),
            "reply_to_mine": reply_to_mine,
            **({} if doubt is None else {"sender_doubt": doubt}),
        },
        "attachments": [],
    }


def _size(message: SourceMessage) -> int:
    """The size in bytes: counted if the bytes are here, else as the provider estimates it."""
    return len(message.raw) if message.raw is not None else max(message.size_estimate, 0)


def _identity(address: str) -> str:
    """An address in the form of ingest.v1: one line, of limited length, never empty."""
    return _CONTROL.sub("?", storable(address))[:LONGEST_IDENTITY].strip() or "unknown"
