"""Queues: what waits in each tier and for how long, what was passed over, and what ended unread."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from pydantic import Field

from postroom.core.access import OPERATE
from postroom.core.views import Page
from postroom.interfaces.http.api.call import Call
from postroom.interfaces.http.api.connectors import WindowQuery
from postroom.interfaces.http.api.forms import Arguments, Filter, Paged
from postroom.interfaces.http.api.handwritten import Noun
from postroom.interfaces.http.cursors import opened_number, sealed
from postroom.operations.jobs.queue_board import (
    EndedKind,
    QueueBoard,
    QueuedMessage,
    SummaryMembers,
    dismiss_messages,
    list_ended,
    load_board,
    load_members,
    peek_messages,
    queue_names,
)
from postroom.operations.jobs.queues import MOST_AT_ONCE, replay
from postroom.operations.overview.windows import window_of

QUEUES = Noun("Queues")
LIST = "ended"
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


class QueuePath(Arguments):
    queue: Filter = Field(description="The name of the queue.")


class SummaryPath(Arguments):
    summary: UUID = Field(description="The id of the summary.")


class EndedQuery(Paged):
    kind: EndedKind = Field("summaries", description="Summaries of coalesced messages, or messages that ended unread.")


class MessagesBody(Arguments):
    messages: list[UUID] = Field(min_length=1, max_length=MOST_AT_ONCE, description="The ids of the messages.")


@dataclass(frozen=True, slots=True)
class QueuesAnswer:
    queues: Sequence[str]


@dataclass(frozen=True, slots=True)
class WaitingAnswer:
    messages: Sequence[QueuedMessage]


@dataclass(frozen=True, slots=True)
class DismissedAnswer:
    """How many of them still waited."""

    dismissed: int


@dataclass(frozen=True, slots=True)
class ReplayedAnswer:
    """The ids of the copies."""

    copies: Sequence[UUID]


@QUEUES.get("/queues")
async def read_queues(call: Call) -> QueuesAnswer:
    """The names of the queues."""
    return QueuesAnswer(await queue_names(call.database, call.parts.queues))


@QUEUES.get("/queues/summaries/{summary}")
async def read_summary(call: Call, path: SummaryPath) -> SummaryMembers:
    """A summary, and the first of the messages that it stands for."""
    return await load_members(call.database, path.summary)


@QUEUES.get("/queues/{queue}")
async def read_queue(call: Call, path: QueuePath, query: WindowQuery) -> QueueBoard:
    """One queue: what waits in each tier, the waits in the window, and its depth over time."""
    window = window_of(query.window, call.clock())
    return await load_board(call.database, call.parts.queues, path.queue, window)


@QUEUES.get("/queues/{queue}/waiting")
async def peek_queue(call: Call, path: QueuePath) -> WaitingAnswer:
    """The first messages that wait, tier by tier, without leasing them."""
    return WaitingAnswer(await peek_messages(call.database, call.parts.queues, path.queue))


@QUEUES.get("/queues/{queue}/ended")
async def read_ended(call: Call, path: QueuePath, query: EndedQuery) -> Page[QueuedMessage]:
    """Messages that ended without being processed, the newest first."""
    before = opened_number(LIST, query.next)
    page = await list_ended(call.database, path.queue, query.kind, before, query.limit)
    return Page(page.messages, sealed(LIST, page.before))


@QUEUES.post("/queues/{queue}/dismiss", OPERATE)
async def dismiss_queued(call: Call, path: QueuePath, body: MessagesBody) -> DismissedAnswer:
    """End waiting messages unread. A replay brings them back. Safe to repeat."""
    count = await dismiss_messages(call.by(), call.parts.queues, path.queue, body.messages)
    return DismissedAnswer(count)


@QUEUES.post("/queues/{queue}/replay", OPERATE, once=True)
async def replay_messages(call: Call, path: QueuePath, body: MessagesBody) -> ReplayedAnswer:
    """Queue copies of past messages."""
    copies = await replay(call.by(), call.parts.queues, path.queue, since=LONG_AGO, ids=body.messages)
    return ReplayedAnswer(copies)
