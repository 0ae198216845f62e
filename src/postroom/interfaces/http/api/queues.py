"""Queues: what waits in each tier and for how long, what was passed over, and what ended unread."""

from datetime import UTC, datetime
from uuid import UUID

from pydantic import Field

from postroom.core.access import OPERATE
from postroom.core.lifecycle import InboxState
from postroom.interfaces.http.api.call import Call
from postroom.interfaces.http.api.connectors import VolumeForm, WindowForm, WindowQuery
from postroom.interfaces.http.api.cursors import opened_number, sealed
from postroom.interfaces.http.api.forms import Answer, Arguments, Filter, Page, Paged, Seconds
from postroom.interfaces.http.api.operation import Noun
from postroom.operations.jobs.queue_board import (
    EndedKind,
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


class QueuesAnswer(Answer):
    queues: list[str]


class TierWaitsForm(Answer):
    """How long messages waited until they were leased. `overrides` is how often starvation gave the tier its turn."""

    leases: int
    median_s: Seconds = Field(validation_alias="median")
    p95_s: Seconds = Field(validation_alias="p95")
    overrides: int


class TierBoardForm(Answer):
    tier: str
    waiting: int
    is_more: bool = Field(description="Whether more wait than were counted.")
    leased: int
    oldest_waiting_at: datetime | None
    streak: int
    guard: int
    wait: TierWaitsForm | None


class DepthsForm(Answer):
    """The deepest sample of each tier in every span."""

    moments: list[datetime]
    by_tier: dict[str, list[int]]
    has_samples: bool


class QueueAnswer(Answer):
    queue: str
    is_known: bool
    is_for_agents: bool
    tiers: list[TierBoardForm]
    depths: DepthsForm
    arrived: VolumeForm
    ended: dict[str, int]
    window: WindowForm


class UntrustedQueued(Answer):
    kind: str | None
    sender: str
    text: str
    reason: str | None


class QueuedForm(Answer):
    """A message in a queue, or one that ended. `members` is how many messages a summary stands for."""

    message_id: UUID
    tier: str
    channel: str
    accepted_at: datetime
    state: InboxState
    attempts: int
    ended_at: datetime | None
    members: int
    untrusted: UntrustedQueued


class WaitingAnswer(Answer):
    messages: list[QueuedForm]


class EndedPage(Page):
    messages: list[QueuedForm]


class SummaryAnswer(Answer):
    summary: QueuedForm
    members: list[QueuedForm]


class DismissedAnswer(Answer):
    """How many of them still waited."""

    dismissed: int


class ReplayedAnswer(Answer):
    """The ids of the copies."""

    copies: list[UUID]


@QUEUES.get("/queues")
async def read_queues(call: Call) -> QueuesAnswer:
    """The names of the queues."""
    return QueuesAnswer(queues=await queue_names(call.database, call.parts.queues))


@QUEUES.get("/queues/summaries/{summary}")
async def read_summary(call: Call, path: SummaryPath) -> SummaryAnswer:
    """A summary, and the first of the messages that it stands for."""
    return SummaryAnswer.of(await load_members(call.database, path.summary))


@QUEUES.get("/queues/{queue}")
async def read_queue(call: Call, path: QueuePath, query: WindowQuery) -> QueueAnswer:
    """One queue: what waits in each tier, the waits in the window, and its depth over time."""
    window = window_of(query.window, call.clock())
    return QueueAnswer.of(await load_board(call.database, call.parts.queues, path.queue, window))


@QUEUES.get("/queues/{queue}/waiting")
async def peek_queue(call: Call, path: QueuePath) -> WaitingAnswer:
    """The first messages that wait, tier by tier, without leasing them."""
    found = await peek_messages(call.database, call.parts.queues, path.queue)
    return WaitingAnswer(messages=[QueuedForm.of(each) for each in found])


@QUEUES.get("/queues/{queue}/ended")
async def read_ended(call: Call, path: QueuePath, query: EndedQuery) -> EndedPage:
    """Messages that ended without being processed, the newest first."""
    before = opened_number(LIST, query.next)
    page = await list_ended(call.database, path.queue, query.kind, before, query.limit)
    return EndedPage(messages=[QueuedForm.of(each) for each in page.messages], next=sealed(LIST, page.before))


@QUEUES.post("/queues/{queue}/dismiss", OPERATE)
async def dismiss_queued(call: Call, path: QueuePath, body: MessagesBody) -> DismissedAnswer:
    """End waiting messages unread. A replay brings them back. Safe to repeat."""
    count = await dismiss_messages(
        call.database, call.parts.queues, path.queue, body.messages, call.signed(), call.clock
    )
    return DismissedAnswer(dismissed=count)


@QUEUES.post("/queues/{queue}/replay", OPERATE, once=True)
async def replay_messages(call: Call, path: QueuePath, body: MessagesBody) -> ReplayedAnswer:
    """Queue copies of past messages."""
    copies = await replay(
        call.database,
        call.parts.queues,
        path.queue,
        call.signed(),
        since=LONG_AGO,
        ids=body.messages,
        clock=call.clock,
    )
    return ReplayedAnswer(copies=copies)
