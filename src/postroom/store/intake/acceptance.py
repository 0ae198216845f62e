"""Acceptance: decides, while inserting, which envelopes are new, which are duplicates, and which conflict.

An envelope is identified by its event (source and event id) and by the key its producer gave, if any. The order of the
steps makes it correct under concurrency: each step takes its rows or finds who took them, and waits while another
transaction holds them. So of any number of writers with the same message exactly one inserts it.

    accounts  mail that Postroom itself works off needs an account that is in use; without one it is refused, and
              nothing of it is remembered
    backfills what names a backfill must be of its endpoint, and the backfill active; else it is refused likewise
    keys      taken, or known for the same event; known for another event is a conflict
    events    taken, or known with the same sender; known with another sender is a conflict
              a full copy of what is known by its metadata is an upgrade, and goes in beside the first
              an event whose message ended as failed is taken again
    contents  (where the queue says so) taken, or seen before: kept as a duplicate, linked to the first; a first one
              that ended as failed does not count
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from postroom.core.errors import AccountUnusable, BadInput, Conflict, Refused, TooFast
from postroom.core.queue.envelope import BETWEEN, Envelope
from postroom.core.queue.queues import QueuePolicy
from postroom.store.backfill import backfill_spend
from postroom.store.backfill.backfill_spend import Admission, Arrived
from postroom.store.engine.codecs import as_uuid, rows_text
from postroom.store.engine.database import Notify, Script, sql, transaction
from postroom.store.installation.rollups import Count, adding

CHANNEL = "inbox"
SAME_TEXT = "the same content came from the same sender a moment before"


class Accepted(NamedTuple):
    """The answer to an ingest. A duplicate is a success with the first id; `known_by` says how it was recognised."""

    request_id: UUID
    duplicate: bool
    known_by: str | None = None


Outcome = Accepted | BadInput | AccountUnusable | Refused | TooFast


@dataclass(frozen=True, slots=True)
class RoutedEnvelope:
    """An envelope about to be accepted: checked, with its text, its queue's policy and its tier.

    `content_hash` identifies its content in a queue that compares contents; else it is None.
    """

    id: UUID
    envelope: Envelope
    text: str
    policy: QueuePolicy
    tier: str
    traceparent: str | None = None
    content_hash: str | None = None

    @property
    def key(self) -> str | None:
        return self.envelope.control.idempotency_key

    @property
    def endpoint_identity(self) -> str:
        return self.envelope.source.endpoint_identity


@dataclass(slots=True)
class _Group:
    """The copies of one event in a batch. The first full one leads, and the others get the same outcome."""

    event_key: str
    places: list[int]
    leader: RoutedEnvelope
    first_id: UUID
    is_new: bool = True
    copy_of: UUID | None = None
    duplicate_of: UUID | None = None


@dataclass(slots=True)
class _Batch:
    """One round of a batch: the indexes of items that do not contradict each other."""

    items: Sequence[RoutedEnvelope]
    places: list[int] = field(default_factory=list[int])
    outcomes: dict[int, Outcome] = field(default_factory=dict[int, Outcome])
    known_keys: set[str] = field(default_factory=set[str])
    groups: dict[str, _Group] = field(default_factory=dict[str, _Group])

    def present(self) -> Iterable[RoutedEnvelope]:
        return (self.items[place] for place in self.places)

    def conflict(self, place: int, field_name: str, taken_by: str) -> None:
        mine = self.items[place]
        problem = f"is already used for {taken_by}, not {mine.envelope.identity}"
        self.outcomes[place] = Conflict(
            field_name, problem, "use a key and an event id that belong to this event alone"
        )


@transaction
def accept_many(items: Sequence[RoutedEnvelope], now: datetime) -> Script[list[Outcome]]:
    """Store new envelopes and recognise known ones; return one outcome for each, in order.

    Envelopes that contradict each other within the batch are decided in successive rounds: the first may itself be
    refused, and must not take the valid one with it.
    """
    outcomes: dict[int, Outcome] = {}
    outcomes |= yield from _without_account(items)
    admission = yield from _admit(items, now)
    outcomes |= {place: error for place, error in admission.refused.items() if place not in outcomes}
    left = [place for place in range(len(items)) if place not in outcomes]
    while left:
        batch, left = _round(items, left)
        yield from _check_keys(batch)
        _form_groups(batch)
        yield from _check_events(batch)
        yield from _check_texts(batch, now)
        yield from _insert(batch, now)
        _conclude(batch)
        outcomes |= batch.outcomes
    if arrived := list(_for_backfills(items, outcomes)):
        yield from backfill_spend.arriving(arrived, admission.pacings, now)
    yield from adding(_counts(items, outcomes), now, items[0].id.int)
    return [outcomes[place] for place in range(len(items))]


def _without_account(items: Sequence[RoutedEnvelope]) -> Script[dict[int, AccountUnusable]]:
    """Find items whose account is missing or removed. Locks the accounts, so that they are not removed meanwhile."""
    asked = {place: item.endpoint_identity for place, item in enumerate(items) if not item.policy.for_agents}
    if not asked:
        return {}
    rows = yield sql("share_accounts", sorted(set(asked.values())))
    states = {identity: state for identity, state in rows}  # noqa: C416
    return {
        place: _unusable(identity, identity in states)
        for place, identity in asked.items()
        if states.get(identity, "removed") == "removed"
    }


def _unusable(identity: str, removed: bool) -> AccountUnusable:
    problem = f"the account {identity!r} was removed" if removed else f"there is no account {identity!r}"
    remedy = "connect the mailbox with `postroom account add`, then send it again; `postroom account list` shows all"
    return AccountUnusable("removed" if removed else "missing", problem, remedy, field="source.endpoint_identity")


def _admit(items: Sequence[RoutedEnvelope], now: datetime) -> Script[Admission]:
    """Find items for a backfill that is not theirs, not active, or slower. Locks the jobs against changes."""
    wanted = {
        place: (item.envelope.control.backfill_job_id, item.endpoint_identity)
        for place, item in enumerate(items)
        if item.envelope.control.backfill_job_id is not None
    }
    return (yield from backfill_spend.admitting(wanted, now)) if wanted else Admission({}, {})


def _for_backfills(items: Sequence[RoutedEnvelope], outcomes: Mapping[int, Outcome]) -> Iterable[Arrived]:
    for place, item in enumerate(items):
        outcome, job_id = outcomes[place], item.envelope.control.backfill_job_id
        if job_id is not None and isinstance(outcome, Accepted):
            is_new = not outcome.duplicate or outcome.known_by == "upgrade"
            yield Arrived(UUID(job_id), item.id, is_new, is_new and _is_full(item))


def _round(items: Sequence[RoutedEnvelope], places: Sequence[int]) -> tuple[_Batch, list[int]]:
    """The first of the items that contradict each other, with all that agree with them; and those that must wait."""
    batch, left = _Batch(items), list[int]()
    events: dict[str, str] = {}
    senders: dict[str, str] = {}
    for place in places:
        item = items[place]
        event_key, sender = item.envelope.event_key, item.envelope.sender.identity
        meant = events.get(item.key, event_key) if item.key is not None else event_key
        if meant != event_key or senders.get(event_key, sender) != sender:
            left.append(place)
            continue
        if item.key is not None:
            events[item.key] = event_key
        senders[event_key] = sender
        batch.places.append(place)
    return batch, left


def _check_keys(batch: _Batch) -> Script[None]:
    """Drop items whose key is already used for another event."""
    meant = {item.key: item.envelope.event_key for item in batch.present() if item.key is not None}
    if not meant:
        return
    taken = yield sql("take_inbox_keys", rows_text(sorted(meant.items())))
    batch.known_keys = meant.keys() - {key for (key,) in taken}
    if not batch.known_keys:
        return
    for key, event_key, inbox_id, sender in (yield sql("select_inbox_keys", sorted(batch.known_keys))):
        for place in batch.places:
            item = batch.items[place]
            if item.key == key and item.envelope.event_key != event_key:
                other = _describe(item.envelope, event_key, sender, inbox_id)
                batch.conflict(place, "control.idempotency_key", other)


def _form_groups(batch: _Batch) -> None:
    for place in batch.places:
        if place in batch.outcomes:
            continue
        item = batch.items[place]
        event_key = item.envelope.event_key
        group = batch.groups.get(event_key)
        if group is None:
            batch.groups[event_key] = _Group(event_key, [place], item, item.id)
            continue
        group.places.append(place)
        if _is_full(item) and not _is_full(group.leader):
            group.leader, group.first_id = item, item.id


def _is_full(item: RoutedEnvelope) -> bool:
    return item.envelope.control.ingestion_tier == "full"


def _check_events(batch: _Batch) -> Script[None]:
    groups = batch.groups
    if not groups:
        return
    rows = [
        (key, group.leader.id, group.leader.envelope.sender.identity, group.leader.envelope.control.ingestion_tier)
        for key, group in groups.items()
    ]
    taken = yield sql("take_events", rows_text(rows))
    known = groups.keys() - {key for (key,) in taken}
    if not known:
        return
    for event_key, inbox_id, sender, ingestion_tier, has_failed in (yield sql("select_events", sorted(known))):
        group = groups[event_key]
        if group.leader.envelope.sender.identity != sender:
            yield from _refuse(batch, group, _describe(group.leader.envelope, event_key, sender, inbox_id))
            continue
        if has_failed:
            if (yield from _taken_again(group, as_uuid(inbox_id))):
                continue
            ((_, inbox_id, _, ingestion_tier, _),) = yield sql("select_events", [event_key])
        group.is_new, group.first_id = False, as_uuid(inbox_id)
        if ingestion_tier == "metadata" and _is_full(group.leader):
            won = yield sql("upgrade_event", event_key)
            group.copy_of = as_uuid(won[0][0]) if won else None


def _taken_again(group: _Group, failed_id: UUID) -> Script[bool]:
    """Claim the event, whose message ended as failed. Of several that try, one succeeds."""
    tier = group.leader.envelope.control.ingestion_tier
    return bool((yield sql("retake_event", group.event_key, failed_id, group.leader.id, tier)))


def _refuse(batch: _Batch, group: _Group, taken_by: str) -> Script[None]:
    """Refuse a group whose event belongs to another sender, and release the keys just taken for it."""
    for place in group.places:
        batch.conflict(place, "event.external_event_id", taken_by)
        key = batch.items[place].key
        if key is not None and key not in batch.known_keys:
            yield sql("forget_key", key)
    del batch.groups[group.event_key]


def _check_texts(batch: _Batch, now: datetime) -> Script[None]:
    firsts: dict[tuple[str, str], _Group] = {}
    rows: list[tuple[object, ...]] = []
    for group in batch.groups.values():
        policy, text_hash = group.leader.policy, group.leader.content_hash
        if not group.is_new or policy.same_text_within is None or text_hash is None:
            continue
        first = firsts.setdefault((policy.queue, text_hash), group)
        if first is group:
            rows.append((policy.queue, text_hash, group.leader.id, now + policy.same_text_within))
    if not rows:
        return
    taken = yield sql("take_texts", rows_text(sorted(rows, key=lambda row: (row[0], row[1]))), now)
    standing = {(queue, text_hash): firsts[queue, text_hash].leader.id for queue, text_hash in taken}
    seen_before = firsts.keys() - standing.keys()
    if seen_before:
        found = yield sql("select_texts", sorted(text_hash for _, text_hash in seen_before))
        standing |= {(queue, text): as_uuid(id) for queue, text, id in found if (queue, text) in seen_before}
    for group in batch.groups.values():
        policy, text_hash = group.leader.policy, group.leader.content_hash
        first_id = standing.get((policy.queue, text_hash or ""))
        if group.is_new and first_id is not None and first_id != group.leader.id:
            group.duplicate_of = group.first_id = first_id
            yield sql("link_event", group.event_key, first_id)


def _insert(batch: _Batch, now: datetime) -> Script[None]:
    fresh = [group for group in batch.groups.values() if group.is_new or group.copy_of is not None]
    if not fresh:
        return
    yield sql("insert_inbox", rows_text([_row(group) for group in fresh]), now)
    for queue in sorted({group.leader.policy.queue for group in fresh if group.duplicate_of is None}):
        yield Notify(CHANNEL, queue)


def _row(group: _Group) -> tuple[object, ...]:
    item = group.leader
    envelope = item.envelope
    source, event, control = envelope.source, envelope.event, envelope.control
    return (item.id, item.policy.queue, item.tier, source.channel, source.provider, source.endpoint_identity,
        event.external_event_id, envelope.sender.identity, event.kind, control.policy_tier, control.ingestion_tier,
        item.text, item.traceparent, group.copy_of, event.observed_at, group.duplicate_of,
        None if group.duplicate_of is None else SAME_TEXT)  # fmt: skip


def _conclude(batch: _Batch) -> None:
    for group in batch.groups.values():
        for place in group.places:
            item = batch.items[place]
            if item is group.leader and group.is_new and group.duplicate_of is None:
                batch.outcomes[place] = Accepted(item.id, duplicate=False)
            else:
                batch.outcomes[place] = Accepted(group.first_id, duplicate=True, known_by=_known_by(batch, group, item))


def _known_by(batch: _Batch, group: _Group, item: RoutedEnvelope) -> str:
    if item is group.leader and group.duplicate_of is not None:
        return "text"
    if item is group.leader and group.copy_of is not None:
        return "upgrade"
    return "key" if item.key is not None and item.key in batch.known_keys else "event"


def _counts(items: Sequence[RoutedEnvelope], outcomes: Mapping[int, Outcome]) -> Iterable[Count]:
    for place, item in enumerate(items):
        match outcomes[place]:
            case Accepted(_, duplicate, known_by) if duplicate and known_by is not None:
                yield Count("duplicate", item.policy.queue, known_by)
            case Accepted():
                asked = item.envelope.control.policy_tier
                tier = asked if item.policy.otherwise is None else item.tier
                yield Count("accepted", item.policy.queue, tier, item.envelope.source.endpoint_identity)
            case BadInput() | AccountUnusable() | Refused() | TooFast():
                pass


def _describe(mine: Envelope, event_key: str, sender: str | None, inbox_id: object) -> str:
    """Describe the other envelope. Its sender is shown only to the endpoint that received it."""
    parts = event_key.split(BETWEEN)
    whose = f" from {sender}" if mine.source.endpoint_identity in parts[2:3] else ""
    return f"{' '.join(parts)}{whose} (request {inbox_id})"
