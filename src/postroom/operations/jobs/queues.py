"""The queues: what waits and since when, and replaying past messages."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, NamedTuple
from uuid import UUID

from postroom.core.access import OPERATE, READ
from postroom.core.bounds import require_queue
from postroom.core.errors import BadInput
from postroom.core.queue.envelope import Moment
from postroom.core.queue.marked_envelope import is_plain, marked_envelope
from postroom.core.queue.queues import QueuePolicy, Queues
from postroom.core.roles import Role
from postroom.operations.caller import Caller
from postroom.operations.nouns import QUEUES
from postroom.operations.operation import ADDS, READS, Argument, command, dialogue, form, post, tool
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.intake import history
from postroom.store.intake.history import WaitingMessage as WaitingMessage

MOST_AT_ONCE = 100
MOST_REPLAYED = 10_000
NAMED_IN_AUDIT = 20
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)

PEEKED = ("message_id", "tier", "state", "attempts", "accepted_at", "channel", "kind", "text")
LONGEST_BEGINNING = 60

QueueName = Annotated[str, Argument("The name of the queue, such as gateway.")]
NamedQueue = Annotated[str, Argument("The queue's name, such as `gateway`; `queue.stats` lists them.", 0, 0)]
QueueMessages = Annotated[Sequence[UUID], Argument("The ids of the messages.", 1, MOST_AT_ONCE)]


@dataclass(frozen=True, slots=True)
class TierStats:
    tier: str
    waiting: int
    leased: int
    oldest_waiting_at: datetime | None
    streak: int
    guard: int


@dataclass(frozen=True, slots=True)
class QueueStats:
    queue: str
    tiers: tuple[TierStats, ...]


class AllQueues(NamedTuple):
    queues: Sequence[QueueStats]


@dataclass(frozen=True, slots=True)
class KeptMessages:
    """How many stored messages of a tier are in one state."""

    queue: str
    tier: str
    state: str
    messages: int


# A tool's own view: `kind` only if it is an identifier, and text of strangers under `envelope.untrusted`.
class PeekedMessage(NamedTuple):
    message_id: UUID
    queue: str
    tier: str
    state: str
    attempts: int
    accepted_at: datetime
    waited: timedelta
    kind: str | None
    channel: str
    envelope: Mapping[str, Any]


class PeekedMessages(NamedTuple):
    messages: Sequence[PeekedMessage]


class ReplayedCopies(NamedTuple):
    message_ids: Sequence[UUID]
    replayed: int


@dataclass(frozen=True, slots=True)
class ReplayedMessages:
    """The ids of the copies."""

    queue: str
    copies: Sequence[UUID]


def _with_beginning(message: WaitingMessage) -> Mapping[str, object]:
    """The whole id, as `queue replay --id` takes it."""
    text = " ".join(str(message.envelope["payload"]["normalized_text"]).split())
    beginning = text if len(text) <= LONGEST_BEGINNING else text[:LONGEST_BEGINNING] + "…"
    return {**asdict(message), "message_id": str(message.message_id), "text": beginning}


@QUEUES.operation(READ, command("queue peek {queue}", *PEEKED, cells=_with_beginning))
async def peek(
    database: Database,
    queues: Queues,
    /,
    queue: QueueName,
    limit: Annotated[int, Argument("At most this many.", 1, MOST_AT_ONCE)] = 10,
) -> list[WaitingMessage]:
    """Show the first messages that wait in a queue, without leasing them."""
    if not 1 <= limit <= MOST_AT_ONCE:
        raise BadInput("max", f"is {limit}", f"ask for 1 to {MOST_AT_ONCE} messages")
    return await database.run(history.peek(queues[queue], limit))


@QUEUES.operation(READ, tool("queue.peek", "Show waiting messages", READS, also={Role.AGENT}, across_accounts=True))
async def peek_marked(
    by: Caller,
    queues: Queues,
    /,
    queue: NamedQueue,
    max: Annotated[int, Argument("How many messages at most, 1 to 100.", 1, MOST_AT_ONCE)] = 10,
) -> PeekedMessages:
    """Shows messages of a queue in the order of their tiers without leasing them."""
    require_queue(queues, by.program, queue)
    now = by.clock()
    return PeekedMessages([_peeked(each, now) for each in await peek(by.database, queues, queue, max)])


def _peeked(message: WaitingMessage, now: datetime) -> PeekedMessage:
    return PeekedMessage(
        message.message_id,
        message.queue,
        message.tier,
        message.state,
        message.attempts,
        message.accepted_at,
        max(timedelta(0), now - message.accepted_at),
        message.kind if is_plain(message.kind) else None,
        message.channel,
        marked_envelope(message.envelope),
    )


@QUEUES.operation(
    READ,
    dialogue("queue stats"),
    tool("queue.stats", "Count waiting messages", READS, also={Role.AGENT}, across_accounts=True),
)
async def queue_stats(database: Database, queues: Queues, /) -> AllQueues:
    """Counts waiting and leased messages for every queue and tier, with the time of the oldest waiting message."""
    depths = await database.run(history.depths())
    streaks = await database.run(history.streaks())
    found = {(each.queue, each.tier, each.state): each for each in depths}
    known = [
        QueueStats(name, tuple(_tier_stats(queues[name], tier, found, streaks) for tier in queues[name].tiers))
        for name in queues.names
    ]
    unknown = sorted({each.queue for each in depths} - set(queues.names))
    return AllQueues([*known, *(_unknown_stats(name, depths) for name in unknown)])


@QUEUES.operation(READ, dialogue("queue stats"))
async def count_kept(database: Database, queues: Queues, /) -> list[KeptMessages]:
    """Count every stored message, including ended ones, by queue, tier and state."""
    return [
        KeptMessages(queue, tier, state, count)
        for queue in queues.names
        for (tier, state), count in sorted((await database.run(history.count_states(queue))).items())
    ]


async def replay(
    by: Caller,
    queues: Queues,
    queue: str,
    *,
    since: datetime,
    until: datetime | None = None,
    kinds: Sequence[str] = (),
    ids: Sequence[UUID] = (),
    most: int = 1000,
) -> list[UUID]:
    """Queue copies of past messages, oldest first, and record who asked; return the ids of the copies."""
    policy = queues[queue]
    if not 1 <= most <= MOST_REPLAYED:
        raise BadInput("max", f"is {most}", f"replay 1 to {MOST_REPLAYED} at a time")
    now = by.clock()
    end = until or now
    if since.tzinfo is None or end.tzinfo is None:
        raise BadInput("since" if since.tzinfo is None else "until", "has no time zone", "add an offset, such as Z")
    if since >= end:
        raise BadInput("since", "is not before the end of the window", "give an earlier time")
    window = history.Span(policy.queue, since.astimezone(UTC), end.astimezone(UTC), tuple(kinds), tuple(ids))
    past = await by.run(history.find_past(window, most))
    if not past:
        return []
    pairs = [(old, new_id()) for old in past]
    asked = {
        "since": window.since.isoformat(),
        "until": window.until.isoformat(),
        "kinds": [kind[:128] for kind in kinds[:NAMED_IN_AUDIT]],
        "ids": [str(id) for id in ids[:NAMED_IN_AUDIT]],
        "count": len(past),
    }
    entry = by.signature.under("queue.replay", "queue", policy.queue, after=asked)
    await by.run(history.replay(pairs, policy.queue, entry, now))
    return [new for _, new in pairs]


def _copies(found: ReplayedMessages) -> Mapping[str, object]:
    return {"queue": found.queue, "replayed": len(found.copies), "ids": found.copies}


def _describe_replay(found: ReplayedMessages, given: Mapping[str, Any]) -> str:
    return f"{len(found.copies):,} of {len(given['messages']):,} queued once more in {found.queue}, as copies."


@QUEUES.operation(
    OPERATE,
    post("/queues/{queue}/replay", once=True),
    form("/queues/replay", _describe_replay),
    command("queue replay {queue}", row=_copies, line="queued once more in {queue}: {replayed}"),
)
async def replay_messages(
    by: Caller,
    queues: Queues,
    /,
    queue: QueueName,
    messages: Annotated[
        Sequence[UUID], Argument("Only these messages, by id.", most=MOST_AT_ONCE, typed_as="--id")
    ] = (),
    since: Annotated[datetime | None, Argument("Only messages accepted since then.")] = None,
    until: Annotated[datetime | None, Argument("Only messages accepted before then, by default until now.")] = None,
    kinds: Annotated[Sequence[str], Argument("Only events of these kinds.", most=MOST_AT_ONCE, typed_as="--kind")] = (),
    limit: Annotated[int, Argument("At most this many, oldest first.", 1, MOST_REPLAYED)] = 1000,
) -> ReplayedMessages:
    """Queue past messages once more, as copies that name their originals. The audit log records who asked."""
    if since is None and not messages:
        raise BadInput("since", "is missing", "say where to start, or name messages by their ids")
    start = since or LONG_AGO
    copies = await replay(by, queues, queue, since=start, until=until, kinds=kinds, ids=messages, most=limit)
    return ReplayedMessages(queue, copies)


@QUEUES.operation(OPERATE, tool("queue.replay", "Replay past messages", ADDS))
async def replay_since(
    by: Caller,
    queues: Queues,
    /,
    queue: NamedQueue,
    since: Annotated[Moment, Argument("Replay what was accepted at or after this time, such as 2026-11-15T08:00:00Z.")],
    until: Annotated[Moment | None, Argument("And before this time; without it, up to now.")] = None,
    kinds: Annotated[Sequence[str], Argument("Only events of these kinds; empty means all.", most=100)] = (),
    ids: Annotated[Sequence[UUID], Argument("Only these messages, by id; empty means all.", most=1000)] = (),
    max: Annotated[int, Argument("How many messages at most, 1 to 1000, oldest first.", 1, 1000)] = 100,
) -> ReplayedCopies:
    """Queues copies of past messages of a queue again, oldest first, under new ids that the answer lists. Select them
    by time (since, until), kinds or ids. Calling it twice replays twice.
    """
    copies = await replay(by, queues, queue, since=since, until=until, kinds=kinds, ids=ids, most=max)
    return ReplayedCopies(copies, len(copies))


def _tier_stats(
    policy: QueuePolicy,
    tier: str,
    found: dict[tuple[str, str, str], history.Depth],
    streaks: dict[str, dict[str, int]],
) -> TierStats:
    waiting, leased = found.get((policy.queue, tier, "waiting")), found.get((policy.queue, tier, "leased"))
    return TierStats(
        tier,
        waiting.count if waiting else 0,
        leased.count if leased else 0,
        waiting.oldest if waiting else None,
        streaks.get(policy.queue, {}).get(tier, 0),
        policy.guards[tier],
    )


def _unknown_stats(queue: str, depths: Sequence[history.Depth]) -> QueueStats:
    """Return a queue that the settings no longer name, with what is still in it."""
    counted: dict[tuple[str, str], int] = {
        (each.tier, each.state): each.count for each in depths if each.queue == queue
    }
    oldest = {each.tier: each.oldest for each in depths if each.queue == queue and each.state == "waiting"}
    tiers = sorted({tier for tier, _ in counted})
    return QueueStats(
        queue,
        tuple(
            TierStats(tier, counted.get((tier, "waiting"), 0), counted.get((tier, "leased"), 0), oldest.get(tier), 0, 0)
            for tier in tiers
        ),
    )
