"""Stored mail read again, in the order in which it was accepted and as it was on arrival: what a replay needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from postroom.core.rules.conditions import MessageFacts, recipients
from postroom.store.engine.codecs import as_time, as_uuid, from_json
from postroom.store.engine.database import Script, query, sql
from postroom.store.mail import StoredMessage

CALLS_AVERAGED = 1_000


class MessagePlace(NamedTuple):
    """Of a message, in the order of acceptance."""

    seq: int
    id: UUID


BEGINNING = MessagePlace(-1, UUID(int=0))
END = MessagePlace(2**63 - 1, UUID(int=2**128 - 1))


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which messages are replayed: all, or those of one account; from a time on; and the newest of these."""

    since: datetime
    newest: int
    account_id: UUID | None = None

    @property
    def account(self) -> str | None:
        return None if self.account_id is None else str(self.account_id)


@dataclass(frozen=True, slots=True)
class Needed:
    """What of messages somebody looks at; the rest is not read."""

    text: bool = True
    recipients: bool = True


@dataclass(frozen=True, slots=True)
class PastMessage:
    """A message as it was on arrival. Its labels are ids: names are those of the account."""

    place: MessagePlace
    at: datetime
    message: StoredMessage


class CallCost(NamedTuple):
    """What a call of the model has cost of late, in millionths of a dollar."""

    calls: int
    micros: float | None


@query
def back_from(place: MessagePlace, wanted: Wanted, most: int) -> Script[tuple[int, MessagePlace]]:
    """How many wanted messages lie right before the place, up to `most`, and the place of the oldest of these."""
    rows = yield sql("select_back", wanted.account, wanted.since, place.seq, place.id, most)
    for count, seq, id in rows:
        return int(count), MessagePlace(seq, as_uuid(id))
    return 0, place


@query
def past_after(
    place: MessagePlace, wanted: Wanted, needed: Needed, most: int, most_text: int
) -> Script[list[PastMessage]]:
    """The next messages in the order of acceptance: as many as there are before their texts have `most_text`
    characters, and the one with which they do."""
    rows = yield sql("select_past", wanted.account, wanted.since, place.seq, place.id, needed.text, most, most_text)
    return [_past(row, needed) for row in rows]


@query
def label_names() -> Script[Mapping[UUID, Mapping[str, str]]]:
    """Of each account, the names of its labels by their ids."""
    found: dict[UUID, dict[str, str]] = {}
    for account_id, _, id, name, *_ in (yield sql("select_all_labels")):
        found.setdefault(as_uuid(account_id), {})[id] = name
    return found


@query
def call_cost() -> Script[CallCost]:
    """The mean of the last calls that were answered."""
    [[calls, micros]] = yield sql("select_call_cost", CALLS_AVERAGED)
    return CallCost(int(calls), None if micros is None else float(micros))


def _past(row: Sequence[Any], needed: Needed) -> PastMessage:
    (seq, id, account_id, provider_id, sender, subject, headers, labels, body, has_attachment, tier, sent_at, at,
        email) = row  # fmt: skip
    kept = tuple((name, value) for name, value in from_json(headers))
    looked_at = MessageFacts(
        sender,
        subject,
        kept,
        frozenset(from_json(labels)),
        body,
        bool(has_attachment),
        recipients(kept) if needed.recipients else (),
        as_time(sent_at),
    )
    message = StoredMessage(as_uuid(id), as_uuid(account_id), provider_id, looked_at, tier, email)
    return PastMessage(MessagePlace(seq, message.id), as_time(at), message)
