"""The priority tier of a mail message: ordered rules, the first that matches decides.

1. `known_contact`: the sender is a known contact, and not in doubt (core/mail/sender_doubt.py) → `high_priority`.
2. `reply_to_outbound`: In-Reply-To names a message that the user sent → `high_priority`.
3. `direct_correspondence`: the user is in To, and nothing marks the message as bulk → `interactive`.
4. `fallback_default` → `default`.

Addresses and ids are compared in canonical form (core/mail/addresses.py, `message_ids`); an absent header never
matches. `assign_tier` takes parsed headers; `assign_tier_from_raw` takes a raw message and parses no more of it than
the rules need. Both apply the same rules and return the same result.
"""

import re
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple

from postroom.core.mail.addresses import LONGEST_VALUE, addresses, canonical
from postroom.core.mail.headers import Headers, head_of, raw_values, read_head, searchable, values, with_line_ends
from postroom.core.mail.sender_doubt import NAMES as SENDER_HEADERS
from postroom.core.mail.sender_doubt import undoubted_sender
from postroom.core.queue.envelope import PolicyTier

BULK_PRECEDENCE = frozenset({"bulk", "list", "junk"})
TIER_HEADERS = (*SENDER_HEADERS, "in-reply-to", "to", "list-unsubscribe", "precedence")
"""All headers that the rules look at. Those of the sender must come in the order in which the message has them."""
_WORDS = re.compile(r"[a-z_-]+")
_IDS = re.compile(r"\((?:[^()\\]|\\.)*+\)|<([^<>]*+)>")

Find = Callable[[str], list[str]]
"""Returns every value of the header with this lower-case name."""
SenderHeaders = Callable[[], Headers]
"""Returns the headers that tell whether the sender is in doubt, in order."""


class Assignment(NamedTuple):
    """A tier and the rule that gave it."""

    tier: PolicyTier
    rule: str


@dataclass(frozen=True, slots=True)
class Known:
    """The connector's knowledge about the user.

    `contacts` are canonical, and may be many; `Known.of` takes them in any form. `sent_ids` are in angle brackets, as
    `message_ids` returns them; only membership is tested, so they may be an index on disk. `own_hosts` are the names
    under which the account's receiving hosts report whether a sender is authentic.
    """

    user_addresses: AbstractSet[str]
    contacts: AbstractSet[str] = frozenset()
    sent_ids: AbstractSet[str] = frozenset()
    own_hosts: AbstractSet[str] = frozenset()

    def __post_init__(self) -> None:
        object.__setattr__(self, "user_addresses", _canonical_set(self.user_addresses))

    @classmethod
    def of(cls, user_addresses: Iterable[str], contacts: Iterable[str] = (), sent_ids: Iterable[str] = ()) -> "Known":
        """Build it from addresses and ids in any form; invalid ones are left out."""
        ids = frozenset(id for value in sent_ids for id in message_ids(value))
        return cls(_canonical_set(user_addresses), _canonical_set(contacts), ids)


def assign_tier(headers: Headers, known: Known) -> Assignment:
    """Apply the first rule that matches."""
    return _decide(lambda name: values(headers, name), lambda: headers, known)


def assign_tier_from_raw(raw: bytes, known: Known) -> Assignment:
    """Apply the same rules to the bytes of a message, or of its head alone."""
    head = head_of(with_line_ends(raw))
    search = searchable(head.block)
    only = frozenset(name.encode() for name in SENDER_HEADERS)
    return _decide(
        lambda name: raw_values(search, head.block, name.encode()), lambda: read_head(head, only).headers, known
    )


def sender_address(headers: Headers) -> str:
    """The first address in From, in canonical form; empty when there is none."""
    return next((address for value in values(headers, "from") for address in addresses(value)), "")


def addressed_to_user(headers: Headers, known: Known) -> bool:
    """Whether one of the user's addresses is in To."""
    return _among(values(headers, "to"), known.user_addresses)


def answers_user(headers: Headers, known: Known) -> bool:
    """Whether In-Reply-To names a message that the user sent."""
    return _answers(values(headers, "in-reply-to"), known)


def is_bulk(headers: Headers) -> bool:
    """Whether the headers say that the message is bulk mail."""
    return _is_bulk(lambda name: values(headers, name))


def message_ids(value: str) -> list[str]:
    """The ids in a Message-ID, In-Reply-To or References header, each as `<id>` without blanks, folds and comments."""
    value = value[:LONGEST_VALUE]
    if "<" in value:
        return [f"<{''.join(id.split())}>" for id in _IDS.findall(value) if id.strip()]
    return [f"<{word}>" for word in value.split() if "@" in word]


def _decide(find: Find, sender_headers: SenderHeaders, known: Known) -> Assignment:
    if known.contacts and _among(find("from"), known.contacts) and _is_contact(sender_headers(), known):
        return Assignment("high_priority", "known_contact")
    if _answers(find("in-reply-to"), known):
        return Assignment("high_priority", "reply_to_outbound")
    if not _is_bulk(find) and _among(find("to"), known.user_addresses):
        return Assignment("interactive", "direct_correspondence")
    return Assignment("default", "fallback_default")


def _is_contact(headers: Headers, known: Known) -> bool:
    return undoubted_sender(headers, known.own_hosts) in known.contacts


def _answers(found: list[str], known: Known) -> bool:
    return any(id in known.sent_ids for value in found for id in message_ids(value))


def _among(found: list[str], known: AbstractSet[str]) -> bool:
    return any(address in known for value in found for address in addresses(value))


def _is_bulk(find: Find) -> bool:
    """Whether there is a List-Unsubscribe with any value, or a bulk Precedence."""
    if find("list-unsubscribe"):
        return True
    return any(BULK_PRECEDENCE.intersection(_WORDS.findall(value.lower())) for value in find("precedence"))


def _canonical_set(given: Iterable[str]) -> frozenset[str]:
    return frozenset(address for each in given if (address := canonical(each)))
