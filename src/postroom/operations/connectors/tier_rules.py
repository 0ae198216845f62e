"""How mail gets its priority tier: the ordered rules, the guard against starvation, and the state of the contacts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, NamedTuple, Protocol

from postroom.core.heartbeat import Liveness
from postroom.core.mail.headers import Headers, values
from postroom.core.mail.providers import PROVIDERS
from postroom.core.mail.sender_doubt import SenderDoubt
from postroom.core.queue.envelope import PolicyTier
from postroom.core.queue.queues import EMAIL, GUARD
from postroom.operations.connectors.connectors import list_connectors
from postroom.settings.queues import queues_of
from postroom.settings.reading import Settings
from postroom.store.engine.clock import Clock, wall_clock
from postroom.store.engine.database import Database
from postroom.store.mail.contacts import SourceCount, count_contacts

__all__ = [
    "CachedContacts",
    "ContactsState",
    "SourceCount",
    "TierGuard",
    "TierRule",
    "TierRules",
    "load_tier_rules",
    "tier_reason",
]

MOST_COUNTED = 20_000
Freshness = Literal["fresh", "too old", "none"]


class TierRule(NamedTuple):
    """One rule, as `core/mail/tiers.py` applies it; `short` is how the mail that it matches is called."""

    number: int
    name: str
    tier: PolicyTier
    when: str
    short: str


TIER_RULES = (
    TierRule(
        1,
        "known_contact",
        "high_priority",
        "the sender is a known contact, and authentication did not fail",
        "from a contact",
    ),
    TierRule(
        2, "reply_to_outbound", "high_priority", "In-Reply-To names a message that you sent", "reply to your mail"
    ),
    TierRule(
        3,
        "direct_correspondence",
        "interactive",
        "you are in To, there is no List-Unsubscribe, and Precedence is not bulk, list or junk",
        "written to you",
    ),
    TierRule(4, "fallback_default", "default", "everything else", "everything else"),
)


class TierFacts(Protocol):
    """A stored message, as far as its tier can be explained. `is_contact` holds now."""

    @property
    def policy_tier(self) -> PolicyTier: ...
    @property
    def is_backfilled(self) -> bool: ...
    @property
    def is_contact(self) -> bool: ...
    @property
    def sender_doubt(self) -> SenderDoubt | None: ...
    @property
    def reply_to_mine(self) -> bool | None: ...
    @property
    def headers(self) -> Headers: ...


class TierReason(NamedTuple):
    """The tier rule that matched a message, as far as it can be told afterwards, and the same for people."""

    rule: str
    words: str


def tier_reason(mail: TierFacts) -> TierReason:
    if mail.is_backfilled:
        return TierReason("backfill", "fetched by a backfill")
    matched = _matched_rule(mail)
    return TierReason(matched, next(each.short for each in TIER_RULES if each.name == matched))


def _matched_rule(mail: TierFacts) -> str:
    match mail.policy_tier:
        case "high_priority":
            is_contact = mail.is_contact and mail.sender_doubt is None
            is_reply = mail.reply_to_mine or values(mail.headers, "in-reply-to")
            # What is neither was from a contact when it came.
            return "reply_to_outbound" if is_reply and not is_contact else "known_contact"
        case "interactive":
            return "direct_correspondence"
        case "default":
            return "fallback_default"


def doubted_contact(doubt: SenderDoubt | None) -> str:
    """Why a message with a contact's address is not from a known contact, in words; empty if it may be."""
    match doubt:
        case None:
            return ""
        case "failed":
            return "from a contact's address, but authentication failed"
        case "unclear":
            return "from a contact's address, but From is unclear"


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
    def size(self) -> int:
        return sum(each.count for each in self.sources)


@dataclass(frozen=True, slots=True)
class TierRules:
    rules: Sequence[TierRule]
    guards: Sequence[TierGuard]
    guard_default: int
    contacts: ContactsState


async def load_tier_rules(database: Database, settings: Settings, clock: Clock = wall_clock) -> TierRules:
    now = clock()
    stale = timedelta(seconds=settings.connector.contacts_stale_s)
    sources = await database.run(count_contacts(MOST_COUNTED))
    copies = [
        CachedContacts(
            each.connector.connector_type,
            each.connector.endpoint_identity,
            each.connector.contacts_generated_at,
            each.connector.last_heartbeat_at,
            each.liveness,
            _freshness(each.connector.contacts_generated_at, stale, now),
        )
        for each in await list_connectors(database, clock)
        if each.connector.connector_type in PROVIDERS
    ]
    refresh = timedelta(seconds=settings.connector.contacts_refresh_s)
    is_more = sum(each.count for each in sources) >= MOST_COUNTED
    return TierRules(TIER_RULES, _guards(settings), GUARD, ContactsState(sources, is_more, copies, refresh, stale))


def _freshness(generated_at: datetime | None, stale: timedelta, now: datetime) -> Freshness:
    if generated_at is None:
        return "none"
    return "fresh" if now - generated_at <= stale else "too old"


def _guards(settings: Settings) -> list[TierGuard]:
    policy = queues_of(settings.queues, settings.routes)[EMAIL.queue]
    usual: Mapping[str, int] = EMAIL.guards
    return [TierGuard(tier, most, most != usual.get(tier)) for tier, most in policy.guards.items()]
