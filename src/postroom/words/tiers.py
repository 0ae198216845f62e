"""The tiers of mail in words: the rules that give a message its tier, and why a message has its own."""

from typing import NamedTuple, Protocol

from postroom.core.mail.headers import Headers, values
from postroom.core.mail.sender_doubt import SenderDoubt
from postroom.core.queue.envelope import PolicyTier
from postroom.core.views import Internal


class TierRule(NamedTuple):
    """One rule, as `core/mail/tiers.py` applies it; `short` is how the mail that it matches is called."""

    number: int
    name: str
    tier: PolicyTier
    when: str
    short: Internal[str]


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
