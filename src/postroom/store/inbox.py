"""The inbox: what was accepted, leased in tier order, and how each message ended.

Acceptance decides about duplicates and inserts in one transaction; a pick and the streaks it leaves are one too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from postroom.core.envelope import Envelope, parse_envelope
from postroom.core.errors import BadInput, LeaseLost
from postroom.core.picker import Policy, after_pick, pick
from postroom.store.codecs import as_time, as_uuid, from_json
from postroom.store.database import Notify, Script, query, sql, transaction

CHANNEL = "inbox"


class Accepted(NamedTuple):
    """The answer to an ingest: a duplicate is a success with the first id."""

    request_id: UUID
    duplicate: bool


@transaction
def accept(id: UUID, envelope: Envelope, text: str, queue: str, tier: str, now: datetime) -> Script[Accepted]:
    """Persists the envelope, given with its text, or finds that it is here already."""
    source, event, sender = envelope.source, envelope.event, envelope.sender.identity
    identity = (source.channel, source.provider, source.endpoint_identity, event.external_event_id, sender)
    taken = yield sql("take_inbox_key", envelope.key, id, *identity)
    if not taken:
        return (yield from _recognise(envelope.key, identity))
    control = envelope.control
    yield sql("insert_inbox", id, queue, tier, *identity, control.policy_tier, control.ingestion_tier, text,
        event.observed_at, now)  # fmt: skip
    yield Notify(CHANNEL, queue)
    return Accepted(id, duplicate=False)


def _recognise(key: str, identity: tuple[str, ...]) -> Script[Accepted]:
    rows = yield sql("select_inbox_key", key)
    first_id, *first_identity = rows[0]
    if tuple(first_identity) != identity:
        raise BadInput(
            "control.idempotency_key",
            f"{key!r} stands for {' '.join(first_identity)} (request {first_id}), not for {' '.join(identity)}",
            "use a key that is unique to the event",
        )
    return Accepted(as_uuid(first_id), duplicate=True)


@dataclass(frozen=True, slots=True)
class Leased:
    """A message in the hands of one consumer."""

    id: UUID
    token: UUID
    tier: str
    policy_tier: str
    ingestion_tier: str
    endpoint_identity: str
    text: str
    accepted_at: datetime
    starvation_override: bool

    @property
    def envelope(self) -> Envelope:
        """Read here and not while leasing, so that one that cannot be read stops nobody but itself."""
        return parse_envelope(from_json(self.text))


@transaction
def lease(policy: Policy, most: int, token: UUID, until: datetime) -> Script[list[Leased]]:
    """Picks up to `most` messages, one by one, exactly as single picks would."""
    yield sql("lock_queue", policy.queue)
    kept = yield sql("select_streaks", policy.queue)
    streaks: dict[str, int] = {tier: streak for tier, streak in kept}  # noqa: C416 - rows are not pairs to a type checker
    leased: list[Leased] = []
    while len(leased) < most:
        heads = yield sql("select_inbox_heads", policy.queue)
        seqs: dict[str, int] = {tier: seq for tier, seq in heads}  # noqa: C416
        picked = pick(policy, frozenset(seqs), streaks)
        if picked is None:
            break
        rows = yield sql("lease_inbox", seqs[picked.tier], token, until)
        leased.append(_leased(rows[0], token, picked.starvation_override))
        streaks = after_pick(policy, streaks, picked.tier)
    if leased:
        for tier, streak in streaks.items():
            yield sql("upsert_streak", policy.queue, tier, streak)
    return leased


def _leased(row: Sequence[Any], token: UUID, override: bool) -> Leased:
    id, tier, policy_tier, ingestion_tier, endpoint_identity, text, accepted_at = row
    return Leased(
        as_uuid(id),
        token,
        tier,
        policy_tier,
        ingestion_tier,
        endpoint_identity,
        text,
        as_time(accepted_at),
        override,
    )


def ending(leased: Leased, state: str, reason: str | None, now: datetime) -> Script[None]:
    """Part of a transaction: ends a leased message together with what it became."""
    ended = yield sql("end_inbox", leased.id, leased.token, state, reason, now)
    if not ended:
        raise LeaseLost(f"message {leased.id} was leased to someone else; change nothing")


@transaction
def give_up(leased: Leased, reason: str, now: datetime) -> Script[None]:
    """Ends a leased message as failed, with the reason."""
    yield from ending(leased, "failed", reason, now)


@transaction
def return_expired(now: datetime) -> Script[int]:
    """Returns what consumers held for too long."""
    rows = yield sql("return_expired_inbox", now)
    return len(rows)


@query
def count_inbox(queue: str) -> Script[dict[tuple[str, str], int]]:
    """How many messages of each tier are in each state."""
    rows = yield sql("count_inbox", queue)
    return {(tier, state): count for tier, state, count in rows}
