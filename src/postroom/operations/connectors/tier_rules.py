"""How mail gets its priority tier: the ordered rules, the guard against starvation, and the state of the contacts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from postroom.core.access import READ
from postroom.core.heartbeat import Liveness
from postroom.core.mail.providers import PROVIDERS
from postroom.core.queue.queues import EMAIL, GUARD
from postroom.core.views import Shown
from postroom.operations.connectors.connectors import ReportedConnector, list_connectors
from postroom.operations.nouns import FILTERS
from postroom.operations.operation import get
from postroom.settings.queues import queues_of
from postroom.settings.reading import Settings
from postroom.store.engine.database import Database
from postroom.store.mail.contacts import SourceCount, count_contacts
from postroom.system.wall_clock import Clock, wall_clock
from postroom.words.tiers import TIER_RULES, TierRule

MOST_COUNTED = 20_000
Freshness = Literal["fresh", "too old", "reading", "none"]
READING_S = 150.0
"""A connector that has just started reports its copy with its second heartbeat."""


class TierGuard(NamedTuple):
    """After how many messages of a tier in a row a lower one gets its turn, and whether a setting says so."""

    tier: str
    most_in_a_row: int
    is_set: bool


class CachedContacts(NamedTuple):
    """A connector's copy of the contacts: when it was exported, and whether it may still be used."""

    connector_type: str
    endpoint_identity: str
    generated_at: datetime | None
    heard_at: datetime
    liveness: Liveness
    freshness: Freshness


@dataclass(frozen=True, slots=True)
class ContactsState:
    """The contacts by source, counted up to a limit, and the copies that connectors use."""

    sources: Sequence[SourceCount]
    is_more: bool
    copies: Sequence[CachedContacts]
    refresh: timedelta
    stale: timedelta

    @property
    def size(self) -> Shown[int]:
        return sum(each.count for each in self.sources)


@dataclass(frozen=True, slots=True)
class TierRules:
    rules: Sequence[TierRule]
    guards: Sequence[TierGuard]
    guard_default: int
    contacts: ContactsState


@FILTERS.operation(READ, get("/filters/tiers"))
async def load_tier_rules(database: Database, settings: Settings, clock: Clock = wall_clock, /) -> TierRules:
    """How mail gets its priority tier, the guard against starvation, and the state of the contacts."""
    now = clock()
    stale = timedelta(seconds=settings.connector.contacts_stale_s)
    sources = await database.run(count_contacts(MOST_COUNTED))
    copies = [
        CachedContacts(
            each.connector_type,
            each.endpoint_identity,
            each.contacts_generated_at,
            each.last_heartbeat_at,
            each.liveness,
            _freshness(each, stale, now),
        )
        for each in await list_connectors(database, clock)
        if each.connector_type in PROVIDERS
    ]
    refresh = timedelta(seconds=settings.connector.contacts_refresh_s)
    is_more = sum(each.count for each in sources) >= MOST_COUNTED
    return TierRules(TIER_RULES, _guards(settings), GUARD, ContactsState(sources, is_more, copies, refresh, stale))


def _freshness(connector: ReportedConnector, stale: timedelta, now: datetime) -> Freshness:
    generated_at = connector.contacts_generated_at
    if generated_at is None:
        runs_s = connector.uptime_s + (now - connector.last_heartbeat_at).total_seconds()
        return "reading" if runs_s < READING_S else "none"
    return "fresh" if now - generated_at <= stale else "too old"


def _guards(settings: Settings) -> list[TierGuard]:
    policy = queues_of(settings.queues, settings.routes)[EMAIL.queue]
    usual: Mapping[str, int] = EMAIL.guards
    return [TierGuard(tier, most, most != usual.get(tier)) for tier, most in policy.guards.items()]
