"""The queues as a page shows them: what waits in each tier and for how long, and what ended without being processed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, get_args
from uuid import UUID

from postroom.core.access import OPERATE, READ
from postroom.core.errors import BadInput, NotFound
from postroom.core.lifecycle import InboxState
from postroom.core.queue.queues import QueuePolicy, Queues
from postroom.core.views import Page, Untrusted
from postroom.operations.caller import Caller
from postroom.operations.jobs.queues import QueueMessages, QueueName
from postroom.operations.nouns import QUEUES
from postroom.operations.operation import Argument, Limit, NextNumber, form, get, post
from postroom.operations.overview.volumes import Volume, Wait, volume_of, waits_of
from postroom.operations.overview.windows import DEFAULT_WINDOW, Window, WindowArgument, WindowName, window_of
from postroom.store.engine.database import Database
from postroom.store.installation.rollups import by_span
from postroom.store.intake import acceptance, history, queue_depths, unread
from postroom.system.wall_clock import Clock

CHANNELS = (acceptance.CHANNEL,)
MOST_COUNTED = 10_000
PEEKED = 20
LISTED = 20
MOST_MEMBERS = 100
DEPTH_STEPS: Mapping[WindowName, timedelta] = {
    "1h": timedelta(minutes=5),
    "24h": timedelta(minutes=15),
    "7d": timedelta(hours=2),
    "30d": timedelta(hours=6),
}
EndedKind = Literal["summaries", "auto_acked", "failed"]
ENDED_KINDS: tuple[EndedKind, ...] = get_args(EndedKind)


@dataclass(frozen=True, slots=True)
class TierBoard:
    """One tier: what waits now, how near its guard is, and how long messages waited in the window."""

    tier: str
    waiting: int
    is_more: Annotated[bool, "Whether more wait than were counted."]
    leased: int
    oldest_waiting_at: datetime | None
    streak: int
    guard: int
    wait: Wait | None


@dataclass(frozen=True, slots=True)
class DepthHistory:
    """The deepest sample of each tier in every span, from the first sample in a window to the last.

    A span without a sample has none: Postroom did not run.
    """

    moments: Sequence[datetime]
    by_tier: Mapping[str, Sequence[int | None]]
    has_samples: bool


@dataclass(frozen=True, slots=True)
class QueueBoard:
    queue: str
    is_known: Annotated[bool, "Whether the settings still have it."]
    is_for_agents: bool
    tiers: Sequence[TierBoard]
    depths: DepthHistory
    arrived: Volume
    ended: Annotated[Mapping[str, int], "How many messages ended in the window, by how."]
    window: Window


@dataclass(frozen=True, slots=True)
class QueuedMessage:
    """A message in a queue, or one that ended: what it is about, in a stranger's words."""

    message_id: UUID
    tier: str
    channel: str
    kind: Untrusted[str | None]
    sender: Untrusted[str]
    text: Untrusted[str]
    accepted_at: datetime
    state: InboxState
    attempts: int = 0
    reason: Untrusted[str | None] = None
    ended_at: datetime | None = None
    members: Annotated[int, "Of a summary: how many messages it stands for."] = 0


@dataclass(frozen=True, slots=True)
class SummaryMembers:
    """A summary with the first of its members."""

    summary: QueuedMessage
    members: Sequence[QueuedMessage]


@dataclass(frozen=True, slots=True)
class QueueNames:
    queues: Sequence[str]


@dataclass(frozen=True, slots=True)
class DismissedMessages:
    """How many of them still waited."""

    dismissed: int


@QUEUES.operation(READ, get("/queues"))
async def read_queues(database: Database, queues: Queues, /) -> QueueNames:
    """The names of the queues."""
    return QueueNames(await queue_names(database, queues))


async def queue_names(database: Database, queues: Queues) -> list[str]:
    """List the queues of the settings, and others in which something waits."""
    live = await database.run(history.live_queues())
    return [*queues.names, *(name for name in live if name not in queues.names)]


@QUEUES.operation(READ, get("/queues/{queue}"))
async def load_queue(
    database: Database, queues: Queues, clock: Clock, /, queue: QueueName, window: WindowArgument = DEFAULT_WINDOW
) -> QueueBoard:
    """One queue: what waits in each tier, the waits in the window, and its depth over time."""
    return await _load_board(database, queues, queue, window_of(window, clock()))


async def _load_board(database: Database, queues: Queues, queue: str, window: Window) -> QueueBoard:
    policy = _policy(queues, queue)
    names = await queue_names(database, queues)
    if queue not in names:
        raise BadInput("queue", f"there is no queue {queue[:80]!r}", f"use one of {', '.join(names)}")
    strays = await database.run(queue_depths.tiers_in(queue))
    tiers = list(dict.fromkeys([*(policy.tiers if policy else ()), *strays]))
    depths = await database.run(queue_depths.tier_depths(queue, tiers, MOST_COUNTED + 1))
    streaks = (await database.run(history.streaks())).get(queue, {})
    waits = await waits_of(database, window, queue)
    guards: Mapping[str, int] = policy.guards if policy else {}
    boards = [
        TierBoard(
            each.tier,
            min(each.waiting, MOST_COUNTED),
            each.waiting > MOST_COUNTED,
            each.leased,
            each.oldest,
            streaks.get(each.tier, 0),
            guards.get(each.tier, 0),
            waits.get(each.tier),
        )
        for each in depths
    ]
    over_time = await _depth_history(database, queue, tiers, window)
    arrived = await volume_of(database, window, tiers, queue=queue)
    ended = await _count_ended(database, queue, window)
    is_for_agents = policy is not None and policy.for_agents
    return QueueBoard(queue, policy is not None, is_for_agents, boards, over_time, arrived, ended, window)


def _policy(queues: Queues, queue: str) -> QueuePolicy | None:
    return queues[queue] if queue in queues.names else None


async def _count_ended(database: Database, queue: str, window: Window) -> Mapping[str, int]:
    counts: Counter[str] = Counter()
    for each in await database.run(by_span("ended", window.since, window.end, window.step)):
        if each.queue == queue:
            counts[each.name] += each.count
    return counts


async def _depth_history(database: Database, queue: str, tiers: Sequence[str], window: Window) -> DepthHistory:
    step = DEPTH_STEPS[window.name]
    found = await database.run(
        queue_depths.depths_between(queue, window.since, window.until, round(step.total_seconds()))
    )
    sampled = {(each.tier, each.place): each.waiting for each in found}
    places = [place for _, place in sampled]
    spans = range(min(places), max(places) + 1) if places else range(0)
    by_tier = {
        tier: [sampled.get((tier, place)) for place in spans]
        for tier in dict.fromkeys([*tiers, *(tier for tier, _ in sampled)])
    }
    return DepthHistory([window.since + step * place for place in spans], by_tier, bool(found))


@QUEUES.operation(READ, get("/queues/{queue}/waiting"))
async def peek_messages(database: Database, queues: Queues, /, queue: QueueName) -> list[QueuedMessage]:
    """The first messages that wait, tier by tier, without leasing them."""
    policy = _policy(queues, queue)
    if policy is None:
        return []
    found = await database.run(history.peek(policy, PEEKED))
    return [
        _message(each.message_id, each, each.state, attempts=each.attempts, accepted_at=each.accepted_at)
        for each in found
    ]


@QUEUES.operation(READ, get("/queues/{queue}/ended"))
async def list_ended(
    database: Database,
    /,
    queue: QueueName,
    kind: Annotated[
        EndedKind, Argument("Summaries of coalesced messages, or messages that ended unread.")
    ] = "summaries",
    limit: Limit = 50,
    next: NextNumber = None,
) -> Page[QueuedMessage]:
    """Messages that ended without being processed, the newest first."""
    if kind == "summaries":
        summaries = await database.run(unread.list_summaries(queue, next, limit))
        shown = [_summary(each) for each in summaries]
        return Page(shown, str(summaries[-1].seq) if len(summaries) == limit else None)
    ended = await database.run(unread.list_unread(queue, kind, next, limit))
    return Page([_ended_message(each) for each in ended], str(ended[-1].seq) if len(ended) == limit else None)


@QUEUES.operation(READ, get("/queues/summaries/{summary}"))
async def load_members(
    database: Database, /, summary: Annotated[UUID, Argument("The id of the summary.")]
) -> SummaryMembers:
    """A summary, and the first of the messages that it stands for."""
    found = await database.run(unread.load_summary(summary))
    if found is None:
        raise NotFound(f"there is no summary {summary}; it may have been pruned")
    members = await database.run(unread.members_of(summary, -1, MOST_MEMBERS))
    return SummaryMembers(_summary(found), [_ended_message(each) for each in members])


def _describe_dismissal(found: DismissedMessages, given: Mapping[str, Any]) -> str:
    of = f"{found.dismissed:,} of {len(given['messages']):,}"
    return f"{of} dismissed unread. They are listed as auto-acked, and can be replayed."


@QUEUES.operation(OPERATE, post("/queues/{queue}/dismiss"), form("/queues/dismiss", _describe_dismissal))
async def dismiss_messages(
    by: Caller, queues: Queues, /, queue: QueueName, messages: QueueMessages
) -> DismissedMessages:
    """End waiting messages unread. A replay brings them back. Safe to repeat."""
    if not queues[queue].for_agents:
        raise BadInput("queue", f"{queue} is processed by Postroom itself", "dismiss events of other queues")
    return DismissedMessages(await by.run(unread.dismiss_waiting(queue, messages, by.signature, by.clock())))


def _summary(found: unread.Summary) -> QueuedMessage:
    text = str(found.envelope["payload"]["normalized_text"])
    return QueuedMessage(
        found.message_id, found.tier, "", "summary", "", text, found.accepted_at, found.state, members=found.members
    )


def _ended_message(found: unread.UnreadMessage) -> QueuedMessage:
    return _message(
        found.message_id,
        found,
        found.state,
        accepted_at=found.accepted_at,
        reason=found.reason,
        ended_at=found.ended_at,
    )


def _message(
    id: UUID,
    found: history.WaitingMessage | unread.UnreadMessage,
    state: InboxState,
    *,
    accepted_at: datetime,
    attempts: int = 0,
    reason: str | None = None,
    ended_at: datetime | None = None,
) -> QueuedMessage:
    envelope: Mapping[str, Any] = found.envelope
    text = str(envelope.get("payload", {}).get("normalized_text", ""))
    sender = str(envelope.get("sender", {}).get("identity", ""))
    return QueuedMessage(
        id, found.tier, found.channel, found.kind, sender, text, accepted_at, state, attempts, reason, ended_at
    )
