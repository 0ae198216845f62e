"""Messages that ended without being processed: what was coalesced into a summary, acknowledged by itself, or failed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from postroom.core.lifecycle import InboxState
from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.engine.reading import read_first, read_rows
from postroom.store.installation.rollups import Count, adding
from postroom.store.people.audit import Signature, auditing

UnreadState = Literal["failed", "coalesced", "auto_acked"]
LOOKED_AT = 10_000
LARGEST = 2**62
DISMISSED = "dismissed by a person"


@dataclass(frozen=True, slots=True)
class UnreadMessage:
    """A message that ended unread, and why."""

    seq: int
    message_id: UUID
    queue: str
    tier: str
    kind: str | None
    channel: str
    envelope: dict[str, Any]
    accepted_at: datetime
    state: InboxState
    reason: str | None
    linked_to: UUID | None
    ended_at: datetime


@dataclass(frozen=True, slots=True)
class Summary:
    """A message that stands for several, and what became of it."""

    seq: int
    message_id: UUID
    queue: str
    tier: str
    members: int
    envelope: dict[str, Any]
    accepted_at: datetime
    state: InboxState


@query
def list_unread(queue: str, state: UnreadState, before: int | None, most: int) -> Script[list[UnreadMessage]]:
    """The newest first, of the last LOOKED_AT messages of all queues that ended so."""
    rows = yield sql("select_unread", queue, state, LARGEST if before is None else before, LOOKED_AT, most)
    return read_rows(UnreadMessage, rows)


@query
def list_summaries(queue: str, before: int | None, most: int) -> Script[list[Summary]]:
    """The newest first."""
    rows = yield sql("select_summaries", queue, LARGEST if before is None else before, most)
    return read_rows(Summary, rows)


@query
def load_summary(id: UUID) -> Script[Summary | None]:
    return read_first(Summary, (yield sql("select_summary", id)))


@query
def members_of(id: UUID, after: int, most: int) -> Script[list[UnreadMessage]]:
    """The messages that a summary stands for, oldest first."""
    return read_rows(UnreadMessage, (yield sql("select_member_views", id, after, most)))


@transaction
def dismiss_waiting(queue: str, ids: Sequence[UUID], signed: Signature, now: datetime) -> Script[int]:
    """End waiting messages unread, and record who asked; return how many still waited. They can be replayed."""
    yield sql("lock_queue", queue)
    seqs = [seq for (seq,) in (yield sql("select_waiting_named", queue, list(ids)))]
    if not seqs:
        return 0
    yield sql("end_inbox", seqs, "auto_acked", DISMISSED, None, now)
    yield from adding((Count("ended", queue, "auto_acked") for _ in seqs), now, seqs[0])
    after = {"count": len(seqs), "ids": [str(id) for id in ids[:20]]}
    yield from auditing(signed.under("queue.dismiss", "queue", queue, after=after), now)
    return len(seqs)
