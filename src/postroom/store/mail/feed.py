"""Queries of the live page."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from postroom.core.actions.action import DecidedType
from postroom.core.lifecycle import ActionState, InboxState
from postroom.core.mail.message import read_mail
from postroom.core.queue.envelope import parse_envelope
from postroom.core.rules.rule import DecisionSource
from postroom.store.engine.codecs import as_uuid, from_json
from postroom.store.engine.database import Script, query, sql
from postroom.store.engine.reading import read_row


@dataclass(frozen=True, slots=True)
class FeedRow:
    """One message, from acceptance to action. `undone` is the state of the action's undo, if there was one."""

    inbox_id: UUID
    seq: int
    accepted_at: datetime
    tier: str
    sender: str
    subject: str
    state: InboxState
    reason: str | None
    action_type: DecidedType | None
    parameters: Mapping[str, Any]
    source: DecisionSource | None
    rule_name: str | None
    rationale: str | None
    action_state: ActionState | None
    action_error: str | None
    undone: ActionState | None


@query
def recent_messages(limit: int) -> Script[list[FeedRow]]:
    """The newest messages of the email queue, newest first."""
    found = yield sql("select_feed_ids", limit)
    rows = yield sql("select_feed", [as_uuid(id) for (id,) in found])
    return [read_row(FeedRow, row, subject=_subject(row)) for row in rows.by_name()]


def _subject(row: Mapping[str, Any]) -> str:
    """The subject; of a message not stored yet, from its envelope. A message that cannot be parsed is shown too."""
    if row["subject"] is not None:
        return row["subject"]
    try:
        return read_mail(parse_envelope(from_json(row["envelope_json"]))).subject
    except Exception:
        return "(unreadable)"


@query
def count_failed_actions(since: datetime, most: int) -> Script[int]:
    """The number of actions that failed since then, `most` at the highest."""
    rows = yield sql("count_failed_actions", since, most)
    return rows[0][0]
