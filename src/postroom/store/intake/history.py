"""Inspecting queues: what waits in them, how much, since when; and replaying past messages."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from postroom.core.lifecycle import InboxState
from postroom.core.queue.queues import QueuePolicy
from postroom.store.engine.codecs import as_uuid, from_json, rows_text
from postroom.store.engine.database import Notify, Script, query, sql, transaction
from postroom.store.engine.reading import read_rows
from postroom.store.intake.acceptance import CHANNEL
from postroom.store.people.audit import AuditEntry, auditing


@dataclass(frozen=True, slots=True)
class WaitingMessage:
    """A waiting message, read without leasing it."""

    message_id: UUID
    queue: str
    tier: str
    state: InboxState
    attempts: int
    accepted_at: datetime
    kind: str | None
    channel: str
    envelope: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Depth:
    """How many messages of one tier are in one state, and when the oldest was accepted."""

    queue: str
    tier: str
    state: InboxState
    count: int
    oldest: datetime | None


@query
def peek(policy: QueuePolicy, most: int) -> Script[list[WaitingMessage]]:
    """The first waiting messages, tier by tier."""
    found: list[WaitingMessage] = []
    for tier in policy.tiers:
        if len(found) < most:
            rows = yield sql("peek_line", policy.queue, tier, most - len(found))
            found += read_rows(WaitingMessage, rows, queue=policy.queue)
    return found


@query
def depths() -> Script[list[Depth]]:
    """Everything waiting or leased, by queue and tier."""
    rows = yield sql("count_live")
    return read_rows(Depth, rows)


@query
def live_queues() -> Script[list[str]]:
    """The queues with waiting messages, whether or not the settings still have them."""
    return [queue for (queue,) in (yield sql("select_live_queues"))]


@query
def any_waiting(queue: str) -> Script[bool]:
    return bool((yield sql("any_waiting", queue)))


@query
def streaks() -> Script[dict[str, dict[str, int]]]:
    rows = yield sql("select_streaks")
    return {queue: from_json(text) for queue, text in rows}


@dataclass(frozen=True, slots=True)
class Span:
    """A selection of past messages by time, kinds (empty for all) and ids (empty for all)."""

    queue: str
    since: datetime
    until: datetime
    kinds: tuple[str, ...] = ()
    ids: tuple[UUID, ...] = ()


@query
def find_past(span: Span, most: int) -> Script[list[UUID]]:
    """The ids of messages that ended, oldest first. Summaries are left out, since their members are included."""
    kinds = list(span.kinds) or None
    if span.ids:
        rows = yield sql("select_named", span.queue, span.since, span.until, kinds, list(span.ids), most)
    else:
        rows = yield sql("select_history", span.queue, span.since, span.until, kinds, most)
    return [as_uuid(id) for (id,) in rows]


@transaction
def replay(pairs: Sequence[tuple[UUID, UUID]], queue: str, entry: AuditEntry, now: datetime) -> Script[None]:
    """Queue copies of past messages, each with the id for its copy; the copies refer to their originals."""
    yield sql("replay_inbox", rows_text(pairs), queue, now)
    yield from auditing(entry, now)
    yield Notify(CHANNEL, queue)


@query
def count_states(queue: str) -> Script[dict[tuple[str, str], int]]:
    """How many stored messages are in each state, by tier. This counts them all, so it is slow."""
    rows = yield sql("count_states", queue)
    return {(tier, state): count for tier, state, count in rows}


@query
def queues_of(ids: Sequence[UUID]) -> Script[frozenset[str]]:
    """The queues of these messages. Unknown ids are in none."""
    return frozenset(queue for (queue,) in (yield sql("select_queues_of", list(ids))))
