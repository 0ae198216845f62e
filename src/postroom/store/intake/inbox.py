"""The inbox: accepted messages, leased in tier order, and how each ended.

A pick and the resulting streaks are one transaction, and picks of one queue run one after another. A leased message
belongs to its lease; ending or returning it requires that lease, and an expired lease is worth nothing. A message that
was given back, or held until its lease ran out, leaves the streaks as if it had never been picked.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

from postroom.core.errors import LeaseLost
from postroom.core.lifecycle import InboxState
from postroom.core.queue.envelope import Envelope, IngestionTier, PolicyTier, envelope_text, parse_envelope
from postroom.core.queue.picker import Head, Pick, is_coalesced, pick_many, stale
from postroom.core.queue.queues import HISTORY, QueuePolicy
from postroom.core.queue.summary import summarise
from postroom.core.queue.turns import Ledger, Turn, record_picks, turn_of, undo_picks
from postroom.store.backfill import backfill_spend
from postroom.store.engine.codecs import as_time, as_uuid, from_json, json_text, rows_text
from postroom.store.engine.database import Notify, Rows, Script, query, sql, transaction
from postroom.store.installation.rollups import SHARDS, Count, adding, hour_of, summed, waited
from postroom.store.intake.acceptance import CHANNEL

STALE_AT_ONCE = 1000
LARGEST_SUMMARY = 10_000
MOST_MEMBERS_NAMED = 1000
SAMPLES = 20
EXPIRED_AT_ONCE = 1000
NO_LIMITS: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class LeasedMessage:
    """A message leased to one consumer. `counted` is the tier it counted for, above its own if it had aged."""

    id: UUID
    token: UUID
    until: datetime
    queue: str
    tier: str
    counted: str
    starvation_override: bool
    attempts: int
    policy_tier: PolicyTier
    ingestion_tier: IngestionTier
    endpoint_identity: str
    text: str
    traceparent: str | None
    member_count: int
    members: tuple[UUID, ...]
    accepted_at: datetime

    @property
    def envelope(self) -> Envelope:
        """Parsed here and not while leasing, so that a malformed envelope affects only itself."""
        return parse_envelope(from_json(self.text))


class EndedMessage(NamedTuple):
    """A message that left the queue or came back to it: its place, when it was accepted, and its end."""

    queue: str
    tier: str
    accepted_at: datetime
    state: InboxState


class Lease(NamedTuple):
    """The messages that a consumer got, and those that ended unprocessed on the way."""

    messages: list[LeasedMessage]
    passed: list[EndedMessage]


@transaction
def lease(
    policy: QueuePolicy, most: int, token: UUID, now: datetime, summary_id: UUID, limits: Mapping[str, int] = NO_LIMITS
) -> Script[Lease]:
    """Pick up to `most` messages, exactly as single picks would. `summary_id` is for a summary, if one is made.

    `limits` are the most to pick of some tiers: beyond them, the others are picked as if nothing more waited there.
    """
    ledger = yield from _locked_ledger(policy.queue)
    lines = yield from _lines(policy, most)
    passed: list[EndedMessage] = []
    if any(stale(policy, tier, lines[tier], now) for tier in policy.auto_ack_after):
        passed = yield from _end_stale(policy, now)
        lines = yield from _lines(policy, most)
        for tier in policy.auto_ack_after:  # a tier with more stale messages than this continues on the next call
            if stale(policy, tier, lines[tier], now):
                del lines[tier]
    for tier, limit in limits.items():
        del lines[tier].rows[limit:]
    picks, _, summary = pick_many(policy, lines, ledger.streaks, now, most)
    if not picks:
        return Lease([], passed)
    members: list[UUID] = []
    if summary is not None:
        picks, members, coalesced = yield from _coalesce(policy, picks, summary_id, now)
        passed += coalesced
    waits = summed(count for each in picks for count in _counts_of(policy, each, now))
    seqs, until = [each.head.seq for each in picks], now + policy.lease
    ledger, turns = record_picks(policy, ledger, picks)
    kept = json_text({str(seq): json_text(turn.form) for seq, turn in zip(seqs, turns, strict=True)})
    rows = yield sql("lease_inbox", seqs, token, until, kept, policy.queue, *_ledger_texts(ledger), rows_text(waits),
        hour_of(now), token.int % SHARDS)  # fmt: skip
    by_seq = {row[0]: row for row in rows}
    leased = [_leased_message(policy, each, by_seq[each.head.seq], token, now, members) for each in picks]
    for place, each in enumerate(leased):
        if each.member_count and not each.members:
            leased[place] = yield from _with_members(each)
    return Lease(leased, passed)


def _counts_of(policy: QueuePolicy, pick: Pick, now: datetime) -> Iterator[Count]:
    yield waited(policy.queue, pick.tier, now - pick.head.accepted_at)
    if pick.starvation_override:
        yield Count("override", policy.queue, pick.tier)


def _locked_ledger(queue: str) -> Script[Ledger]:
    rows = yield sql("lock_queue", queue)
    if not rows:
        yield sql("insert_queue_state", queue, "{}")
        rows = yield sql("lock_queue", queue)
    streaks, turns = (from_json(text) for text in rows[0])
    return Ledger(streaks, turns.get("picked", 0), turns.get("broken_by", {}))


def _ledger_texts(ledger: Ledger) -> tuple[str, str]:
    return json_text(ledger.streaks), json_text({"picked": ledger.picked, "broken_by": ledger.broken_by})


class _Line:
    """The oldest messages of one tier. Heads are built on demand: of hundreds fetched, a batch looks at a few."""

    def __init__(self) -> None:
        self.rows: list[Sequence[Any]] = []

    def __iter__(self) -> Iterator[Head]:
        return (Head(seq, as_time(accepted_at), bool(fresh)) for _, seq, accepted_at, fresh in self.rows)


def _lines(policy: QueuePolicy, most: int, tiers: Sequence[str] = ()) -> Script[defaultdict[str, _Line]]:
    """The oldest waiting messages of each tier."""
    rows = yield sql("select_lines", policy.queue, list(tiers or policy.tiers), most)
    lines: defaultdict[str, _Line] = defaultdict(_Line)
    for row in rows:
        lines[row[0]].rows.append(row)
    return lines


def _end_stale(policy: QueuePolicy, now: datetime) -> Script[list[EndedMessage]]:
    """End messages that have waited too long to be useful, from the head of each tier, a limited number."""
    passed: list[EndedMessage] = []
    for tier, patience in policy.auto_ack_after.items():
        lines = yield from _lines(policy, STALE_AT_ONCE, [tier])
        old = stale(policy, tier, lines[tier], now)
        if old:
            reason = f"waited longer than {patience.total_seconds():g} s in {tier}"
            passed += yield from _end([head.seq for head in old], "auto_acked", reason, None, now)
    return passed


def _coalesce(
    policy: QueuePolicy, picks: list[Pick], summary_id: UUID, now: datetime
) -> Script[tuple[list[Pick], list[UUID], list[EndedMessage]]]:
    """Turn the last pick into a summary of all equally young messages of its tier, unless it is the only one."""
    last = picks[-1]
    since = now - policy.coalesce_within[last.tier]
    seqs = [seq for (seq,) in (yield sql("select_fresh", policy.queue, last.tier, since, LARGEST_SUMMARY))]
    if len(seqs) < 2 or not is_coalesced(policy, last.tier, last.head, now):
        return picks, [], []
    kinds = yield sql("count_kinds", seqs)
    texts = yield sql("select_texts_of", seqs[:SAMPLES])
    samples = [from_json(text)["payload"]["normalized_text"] for (text,) in texts]
    envelope = summarise(summary_id, {kind: count for kind, count in kinds}, samples, last.head.accepted_at, now)  # noqa: C416
    source = envelope.source
    rows = yield sql("insert_summary", summary_id, policy.queue, last.tier, source.channel, source.provider,
        source.endpoint_identity, envelope.event.external_event_id, envelope.sender.identity, envelope.event.kind,
        envelope_text(envelope), len(seqs), now)  # fmt: skip
    seq = rows[0][0]
    yield sql("queue_summary", seq, summary_id, policy.queue, last.tier, now)
    passed = yield from _end(seqs, "coalesced", f"one of {len(seqs)} in a summary", summary_id, now)
    members = yield sql("select_members", summary_id, MOST_MEMBERS_NAMED)
    summary = last._replace(head=Head(seq, now))
    return [*picks[:-1], summary], [as_uuid(id) for (id,) in members], passed


def _leased_message(
    policy: QueuePolicy, pick: Pick, row: Sequence[Any], token: UUID, now: datetime, members: Sequence[UUID]
) -> LeasedMessage:
    _, attempts, id, policy_tier, ingestion_tier, endpoint, text, traceparent, count, accepted_at = row
    return LeasedMessage(
        as_uuid(id),
        token,
        now + policy.lease,
        policy.queue,
        pick.tier,
        pick.counted,
        pick.starvation_override,
        attempts,
        policy_tier,
        ingestion_tier,
        endpoint,
        text,
        traceparent,
        count or 0,
        tuple(members) if count and attempts == 1 else (),
        as_time(accepted_at),
    )


def _with_members(leased: LeasedMessage) -> Script[LeasedMessage]:
    """A returned summary, with its members."""
    rows = yield sql("select_members", leased.id, MOST_MEMBERS_NAMED)
    return replace(leased, members=tuple(as_uuid(id) for (id,) in rows))


def _end(
    seqs: Sequence[int], state: InboxState, reason: str | None, linked_to: UUID | None, now: datetime
) -> Script[list[EndedMessage]]:
    rows = yield sql("end_inbox", list(seqs), state, reason, linked_to, now)
    passed = [EndedMessage(queue, tier, as_time(accepted_at), state) for _, queue, tier, accepted_at in rows]
    yield from adding((Count("ended", each.queue, state) for each in passed), now, seqs[0] if seqs else 0)
    return passed


class LeaseRef(NamedTuple):
    """A message and the lease that holds it."""

    message_id: UUID
    lease_token: UUID


def _pairs(refs: Sequence[LeaseRef]) -> str:
    return rows_text([(ref.message_id, ref.lease_token) for ref in refs])


@transaction
def ack(refs: Sequence[LeaseRef], now: datetime) -> Script[dict[LeaseRef, EndedMessage]]:
    """End the messages as done; return those that were still held."""
    shard = refs[0].lease_token.int % SHARDS
    rows = yield sql("ack_inbox", _pairs(refs), now, hour_of(now), shard)
    named = {(str(ref.message_id), str(ref.lease_token)): ref for ref in refs}
    return {
        named[str(id), str(token)]: EndedMessage(queue, tier, as_time(at), "done")
        for id, token, queue, tier, at in rows
    }


@transaction
def nack(
    refs: Sequence[LeaseRef], reason: str, most_deliveries: Mapping[str, int], now: datetime
) -> Script[dict[LeaseRef, EndedMessage]]:
    """Return the messages to the heads of their tiers, or end them as failed if they were delivered too often."""
    rows = yield sql("lock_leased", _pairs(refs), now)
    found = [(seq, queue, tier, attempts) for seq, _, _, queue, tier, attempts, _ in rows]
    states = yield from _give_back(found, reason, most_deliveries, now)
    return {
        LeaseRef(as_uuid(id), as_uuid(token)): EndedMessage(queue, tier, as_time(at), states[seq])
        for seq, id, token, queue, tier, _, at in rows
    }


@transaction
def give_back(refs: Sequence[LeaseRef], now: datetime) -> Script[None]:
    """Return messages that were leased for a caller that never received them, as if they had not been touched."""
    ledgers = yield from _locked_ledgers((yield sql("select_leased_queues", _pairs(refs), now)))
    rows = yield sql("lock_leased", _pairs(refs), now)
    if rows:
        yield from _take_back(ledgers, [(row[0], row[3]) for row in rows])
        yield sql("return_inbox", [row[0] for row in rows], None, 1)
        for queue in sorted({row[3] for row in rows}):
            yield Notify(CHANNEL, queue)


def _locked_ledgers(rows: Rows) -> Script[dict[str, Ledger]]:
    """Lock the ledgers before any message, in the order that everyone uses, so that there are no deadlocks."""
    ledgers: dict[str, Ledger] = {}
    for queue in sorted({queue for (queue,) in rows}):
        ledgers[queue] = yield from _locked_ledger(queue)
    return ledgers


def _take_back(ledgers: Mapping[str, Ledger], back: Sequence[tuple[int, str]]) -> Script[None]:
    """Restore the streaks as if these messages, each given with its queue, had never been picked."""
    for queue, ledger in ledgers.items():
        seqs = {seq for seq, each in back if each == queue}
        if not seqs:
            continue
        turns: dict[int, Turn] = {}
        for seq, text in (yield sql("select_turns", queue)):
            turns[seq] = turn_of(from_json(text))
        returned = [turn for seq, turn in turns.items() if seq in seqs]
        held = {turn.number: seq for seq, turn in turns.items() if seq not in seqs}
        after, changed = undo_picks(ledger, returned, [turns[seq] for seq in held.values()])
        yield sql("keep_ledger", queue, *_ledger_texts(after))
        for turn in changed:
            yield sql("keep_turn", held[turn.number], json_text(turn.form))


@query
def any_message() -> Script[bool]:
    """Whether anything waits or is leased, in any queue."""
    return bool((yield sql("select_any_message")))


@transaction
def return_expired(most_deliveries: Mapping[str, int], now: datetime) -> Script[list[tuple[str, InboxState]]]:
    """Return messages whose lease ran out; report the queue and the new state of each."""
    ledgers = yield from _locked_ledgers((yield sql("select_expired_queues", now)))
    if not ledgers:
        return []
    rows = yield sql("lock_expired", now, EXPIRED_AT_ONCE)
    found = [(seq, queue, tier, attempts) for seq, queue, tier, attempts in rows if queue in ledgers]
    worn_out = _worn_out(found, most_deliveries)
    yield from _take_back(ledgers, [(seq, queue) for seq, queue, *_ in found if seq not in worn_out])
    states = yield from _give_back(found, "its lease ran out", most_deliveries, now)
    return [(queue, states[seq]) for seq, queue, *_ in found]


def _give_back(
    found: Sequence[tuple[int, str, str, int]], reason: str, most_deliveries: Mapping[str, int], now: datetime
) -> Script[dict[int, InboxState]]:
    worn_out = _worn_out(found, most_deliveries)
    back = [seq for seq, *_ in found if seq not in worn_out]
    if worn_out:
        yield from _end(list(worn_out), "failed", f"delivered too often; the last time: {reason}", None, now)
    if back:
        yield sql("return_inbox", back, reason, 0)
        for queue in sorted({queue for seq, queue, *_ in found if seq in set(back)}):
            yield Notify(CHANNEL, queue)
    return {seq: "failed" if seq in worn_out else "waiting" for seq, *_ in found}


def _worn_out(found: Sequence[tuple[int, str, str, int]], most_deliveries: Mapping[str, int]) -> dict[int, None]:
    """The messages that have been delivered as often as allowed, in order."""
    return {seq: None for seq, queue, _, attempts in found if attempts >= most_deliveries.get(queue, attempts + 1)}


def ending(leased: LeasedMessage, state: InboxState, reason: str | None, now: datetime) -> Script[None]:
    """Part of a transaction: end a leased message together with what it became."""
    rows = yield sql("lock_leased", _pairs([LeaseRef(leased.id, leased.token)]), now)
    if not rows:
        raise LeaseLost(f"message {leased.id} is no longer held under this lease; change nothing")
    yield from _end([rows[0][0]], state, reason, None, now)


def ending_all(leased: Sequence[LeasedMessage], state: InboxState, now: datetime) -> Script[None]:
    """Part of a transaction: end leased messages together with what they became."""
    rows = yield sql("lock_leased", _pairs([LeaseRef(each.id, each.token) for each in leased]), now)
    if len(rows) < len(leased):
        held = {as_uuid(id) for _, id, *_ in rows}
        lost = next(each.id for each in leased if each.id not in held)
        raise LeaseLost(f"message {lost} is no longer held under this lease; change nothing")
    yield from _end([row[0] for row in rows], state, None, None, now)


@transaction
def give_up(leased: LeasedMessage, reason: str, now: datetime) -> Script[None]:
    """End a leased message as failed, with the reason."""
    yield from ending(leased, "failed", reason, now)
    if leased.tier == HISTORY:
        yield from backfill_spend.giving_up(leased.id, now)


@transaction
def adopt_strays(policy: QueuePolicy, most: int) -> Script[int]:
    """Move messages of tiers that the settings no longer have to the fallback tier, so that none is stranded."""
    rows = yield sql("select_strays", policy.queue, 1000)
    moved = 0
    for (tier,) in rows:
        if tier not in policy.guards and moved < most:
            target = policy.otherwise or policy.tiers[-1]
            moved += len((yield sql("move_tier", policy.queue, tier, target, most - moved)))
    return moved


@transaction
def sweep(policy: QueuePolicy, now: datetime) -> Script[list[EndedMessage]]:
    """End what has waited too long, even if nobody leases anything; at most STALE_AT_ONCE per tier."""
    yield from _locked_ledger(policy.queue)
    return (yield from _end_stale(policy, now))


@transaction
def forget_texts(now: datetime) -> Script[None]:
    """Delete expired content hashes."""
    yield sql("forget_texts", now)


@transaction
def prune_inbox(queue: str, before: datetime, most: int) -> Script[int]:
    """Delete messages that ended long ago; their keys stay, so that duplicates are still recognised."""
    seqs = [seq for (seq,) in (yield sql("select_prunable", queue, before, most))]
    if seqs:
        yield sql("delete_inbox", seqs)
    return len(seqs)
