"""What the live page reads."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from postroom.core.mail.message import read_mail
from postroom.core.queue.envelope import parse_envelope
from postroom.store.engine.codecs import as_time, as_uuid, from_json
from postroom.store.engine.database import Script, query, sql


@dataclass(frozen=True, slots=True)
class FeedRow:
    """One message from its acceptance to its action."""

    inbox_id: UUID
    seq: int
    accepted_at: datetime
    tier: str
    sender: str
    subject: str
    state: str
    reason: str | None
    action_type: str | None
    parameters: Mapping[str, Any]
    source: str | None
    rule_name: str | None
    rationale: str | None
    action_state: str | None
    action_error: str | None


@query
def recent_messages(limit: int) -> Script[list[FeedRow]]:
    """The newest messages of the email queue, newest first."""
    rows = yield sql("select_feed", limit)
    return [
        FeedRow(
            as_uuid(id),
            seq,
            as_time(accepted_at),
            tier,
            sender,
            subject if subject is not None else _subject(envelope),
            state,
            reason,
            action_type,
            {} if parameters is None else from_json(parameters),
            source,
            rule_name,
            rationale,
            action_state,
            error,
        )
        for (id, seq, accepted_at, tier, sender, subject, envelope, state, reason, action_type, parameters, source,
            rule_name, rationale, action_state, error) in rows
    ]  # fmt: skip


def _subject(envelope_json: str) -> str:
    """Of a message that is not stored yet. One that cannot be read is shown all the same."""
    try:
        return read_mail(parse_envelope(from_json(envelope_json))).subject
    except Exception:
        return "(unreadable)"


@query
def count_decisions() -> Script[int]:
    rows = yield sql("count_decisions")
    return rows[0][0]


@query
def count_actions() -> Script[dict[str, int]]:
    """How many actions are in each state."""
    rows = yield sql("count_actions")
    return {row[0]: row[1] for row in rows}
