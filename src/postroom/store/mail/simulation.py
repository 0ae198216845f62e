"""Reads stored mail for a simulation: in the order of acceptance, and as it was on arrival."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from postroom.core.rules.facts import MessageFacts, recipients
from postroom.store.engine.codecs import as_uuid
from postroom.store.engine.database import Script, query, sql
from postroom.store.engine.reading import read_first, read_row
from postroom.store.mail.mail import StoredMessage, with_derived

CALLS_AVERAGED = 1_000


class MessagePlace(NamedTuple):
    """The place of a message in the order of acceptance."""

    seq: int
    id: UUID


BEGINNING = MessagePlace(-1, UUID(int=0))
END = MessagePlace(2**63 - 1, UUID(int=2**128 - 1))


@dataclass(frozen=True, slots=True)
class MessageSelection:
    """A selection of messages to simulate: all accounts or one, since a time, and only the newest."""

    since: datetime
    newest: int
    account_id: UUID | None = None

    @property
    def account(self) -> str | None:
        return None if self.account_id is None else str(self.account_id)


@dataclass(frozen=True, slots=True)
class NeededFields:
    """The fields of messages that are needed; the others are not read."""

    text: bool = True
    recipients: bool = True
    sender: bool = True
    """Whether the sender is a contact, and has written before."""


@dataclass(frozen=True, slots=True)
class PastMessage:
    """A message as it was on arrival. Its labels are ids; the account has their names."""

    place: MessagePlace
    at: datetime
    message: StoredMessage


class CallCost(NamedTuple):
    """The recent cost of a model call, in millionths of a dollar."""

    calls: int
    micros: float | None


@query
def back_from(place: MessagePlace, wanted: MessageSelection, most: int) -> Script[tuple[int, MessagePlace]]:
    """How many wanted messages lie directly before the place, up to `most`, and the place of the oldest of them."""
    rows = yield sql("select_back", wanted.account, wanted.since, place.seq, place.id, most)
    for row in rows.by_name():
        return row["count"], read_row(MessagePlace, row)
    return 0, place


@query
def past_after(
    place: MessagePlace, wanted: MessageSelection, needed: NeededFields, most: int, most_text: int
) -> Script[list[PastMessage]]:
    """The next messages in the order of acceptance, until their texts have `most_text` characters, including the
    message that reaches it.
    """
    rows = yield sql(
        "select_past", wanted.account, wanted.since, place.seq, place.id, needed.text, needed.sender, most, most_text
    )
    return [_past(row, needed) for row in rows.by_name()]


@query
def label_names() -> Script[Mapping[UUID, Mapping[str, str]]]:
    """The names of labels by id, for each account."""
    found: dict[UUID, dict[str, str]] = {}
    for row in (yield sql("select_all_labels")).by_name():
        found.setdefault(as_uuid(row["account_id"]), {})[row["provider_label_id"]] = row["name"]
    return found


@query
def call_cost() -> Script[CallCost]:
    """The mean cost of the last answered calls."""
    return read_first(CallCost, (yield sql("select_call_cost", CALLS_AVERAGED))) or CallCost(0, None)


def _past(row: Mapping[str, Any], needed: NeededFields) -> PastMessage:
    read = read_row(MessageFacts, row)
    facts = with_derived(read, row["account_email"], recipients(read.headers) if needed.recipients else ())
    return read_row(PastMessage, row, message=read_row(StoredMessage, row, facts=facts))
