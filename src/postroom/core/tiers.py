"""The priority tier of a Gmail message: ordered rules, the first that matches decides (seed 000, section 2)."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from email.utils import getaddresses
from typing import NamedTuple

from postroom.core.envelope import PolicyTier

LONGEST_VALUE = 16_384
BULK_PRECEDENCE = frozenset({"bulk", "list", "junk"})

Headers = tuple[tuple[str, str], ...]


class Assignment(NamedTuple):
    """A tier and the rule that gave it."""

    tier: PolicyTier
    rule: str


@dataclass(frozen=True, slots=True)
class Known:
    """What the connector knows about the user: addresses lower-cased, ids as they stand in headers."""

    user_addresses: AbstractSet[str]
    contacts: AbstractSet[str] = frozenset()
    sent_ids: AbstractSet[str] = frozenset()


def assign_tier(headers: Headers, known: Known) -> Assignment:
    """The first rule that matches; an absent header never matches."""
    if _addresses(headers, "from") & known.contacts:
        return Assignment("high_priority", "known_contact")
    if any(id in known.sent_ids for value in values(headers, "in-reply-to") for id in value.split()):
        return Assignment("high_priority", "reply_to_outbound")
    if _addresses(headers, "to") & known.user_addresses and not _is_bulk(headers):
        return Assignment("interactive", "direct_correspondence")
    return Assignment("default", "fallback_default")


def values(headers: Headers, name: str) -> list[str]:
    """Every value of a header, whatever the case of its name."""
    return [value for key, value in headers if key.lower() == name]


def sender_address(headers: Headers) -> str:
    """The lower-cased address in From; empty when there is none."""
    return next(iter(sorted(_addresses(headers, "from"))), "")


def _addresses(headers: Headers, name: str) -> frozenset[str]:
    """Mail is hostile: what the parser chokes on (nested comments without end) counts as no address."""
    try:
        pairs = getaddresses([value[:LONGEST_VALUE] for value in values(headers, name)])
    except (RecursionError, IndexError, ValueError):
        return frozenset()
    return frozenset(address.strip().lower() for _, address in pairs if "@" in address)


def _is_bulk(headers: Headers) -> bool:
    precedence = {value.strip().lower() for value in values(headers, "precedence")}
    return bool(values(headers, "list-unsubscribe")) or bool(precedence & BULK_PRECEDENCE)
