"""The results of recipients, by hour, destination and class of bounce: delivered, put off, bounced, rejected, given up.

The counts are written in the transaction of the outcomes, so that they are exact and survive restarts. An attempt that
is put off counts each time; a recipient that a later report takes back counts as bounced in the hour of the report.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple, get_args
from uuid import UUID

from postroom.core.outbound.bounce_classes import BounceClass
from postroom.core.outbound.destinations import smtp_address
from postroom.core.views import Untrusted
from postroom.store.engine.codecs import rows_text
from postroom.store.engine.database import Script, query, sql
from postroom.store.engine.reading import read_rows
from postroom.store.installation.figure_folds import folded_part
from postroom.store.installation.rollups import SHARDS, hour_of

DeliveryResult = Literal["sent", "deferred", "bounced", "rejected", "expired"]
ResultClass = Literal["", "hard", "soft", "policy", "reputation", "full", "greylist", "content", "unexplained"]
"""A class of bounce, or none."""
RESULTS: tuple[DeliveryResult, ...] = get_args(DeliveryResult)
LONGEST_DESTINATION = 255
NO_CLASS = ""


class CountedOutcome(NamedTuple):
    """The result of one recipient in one attempt. States that are no result are not counted."""

    address: str
    state: str
    bounce_class: BounceClass | None = None


def counting_outcomes(outcomes: Iterable[CountedOutcome], shard_of: UUID, now: datetime) -> Script[None]:
    """Part of a transaction: count outcomes. Sorted, so that two writers cannot deadlock."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for address, state, bounce_class in outcomes:
        if state in RESULTS:
            counts[destination_of(address), state, NO_CLASS if bounce_class is None else bounce_class.value] += 1
    if counts:
        rows = [(*key, count) for key, count in sorted(counts.items())]
        yield sql("add_outbound_results", rows_text(rows), hour_of(now), shard_of.int % SHARDS)


def counting_sending(mail_id: UUID, state: str, now: datetime) -> Script[int]:
    """Part of a transaction: count the recipients of a mail in delivery, before they get this state together."""
    rows = yield sql("select_sending_addresses", mail_id)
    yield from counting_outcomes([CountedOutcome(address, state) for (address,) in rows], mail_id, now)
    return len(rows)


def destination_of(address: str) -> str:
    """The domain that mail to this address goes to; what follows the last `@` where there is no such domain."""
    found = smtp_address(address)
    return (found.destination if found is not None else address.rpartition("@")[2].lower())[:LONGEST_DESTINATION]


@dataclass(frozen=True, slots=True)
class DestinationResults:
    """The results of the recipients at one destination."""

    destination: Untrusted[str]
    sent: int
    deferred: int
    bounced: int
    rejected: int
    expired: int


@dataclass(frozen=True, slots=True)
class ClassResults:
    """How often a result had a class; the class is empty where the answer gave none."""

    result: DeliveryResult
    bounce_class: ResultClass
    count: int


class OutboundResults(NamedTuple):
    """The results of a window: in all by class, and at the destinations with the most of them."""

    classes: list[ClassResults]
    destinations: list[DestinationResults]


@query
def load_results(since: datetime, until: datetime, most: int) -> Script[OutboundResults]:
    """The hours that begin in the window."""
    window = (since, *(yield from folded_part("outbound", since, until)), until)
    classes = read_rows(ClassResults, (yield sql("select_result_classes", *window)))
    found = read_rows(DestinationResults, (yield sql("select_destination_results", *window, most)))
    return OutboundResults(classes, found)
