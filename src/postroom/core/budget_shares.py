"""Shares of the language model's daily budget, so that no stranger spends all of it.

    a sender                  a tenth of the day's budget
    a domain                  a quarter; contacts are not counted
    mail in bulk              up to three fifths of the budget
    mail written to you       up to four fifths
    contacts                  all of it

A share is checked against the actual and possible cost of the sender's calls of the day. The first call of a day is
always made, however small the share. Answers to the user count as mail written to them unless a contact wrote them: the
id of a letter to a list is public, and anyone can answer it under many names. A contact's mail and unproven mail under
the same address are counted apart: no one can use up another's share. Calls carry only a hash of the sender and of the
domain, since the records of calls hold nothing of any mail.
"""

import hashlib
from typing import Literal, NamedTuple

from postroom.core.queue.envelope import PolicyTier

ShareKind = Literal["sender", "domain", "tier"]
_SHORT_SUFFIX = 3
_COUNTRY = 2


class BudgetShares(NamedTuple):
    """Parts of the day's budget: the most for a sender and for a domain, and the reserve for others."""

    sender: float = 0.1
    domain: float = 0.25
    kept_for_direct: float = 0.2
    kept_for_contacts: float = 0.2

    def cap_of(self, kind: ShareKind, tier: PolicyTier, day_micros: int) -> int:
        match kind:
            case "sender":
                return int(self.sender * day_micros)
            case "domain":
                return int(self.domain * day_micros)
            case "tier":
                return int(day_micros * (1 - self._kept_from(tier)))

    def _kept_from(self, tier: PolicyTier) -> float:
        match tier:
            case "high_priority":
                return 0
            case "interactive":
                return self.kept_for_contacts
            case "default":
                return self.kept_for_contacts + self.kept_for_direct


class Spender(NamedTuple):
    """On whose account a call is made: the keys of the shares, and the tier. Contacts use no share of a domain."""

    sender: str
    domain: str | None
    tier: PolicyTier

    @classmethod
    def of(cls, sender: str, tier: PolicyTier, *, is_contact: bool = True) -> "Spender":
        sender = sender.lower()
        if tier == "high_priority" and not is_contact:
            tier = "interactive"
        if tier == "high_priority":
            return cls(_key(f"contact {sender}"), None, tier)
        return cls(_key(sender), _key(organisation_of(sender.rpartition("@")[2])), tier)


class Share(NamedTuple):
    """A share: its kind, its key, which is the name of a tier, and the most that it allows."""

    kind: ShareKind
    key: str
    cap_micros: int


def shares_of(spender: Spender, shares: BudgetShares, day_micros: int) -> list[Share]:
    """The shares that a call uses."""
    named: list[tuple[ShareKind, str | None]] = [
        ("tier", spender.tier),
        ("sender", spender.sender),
        ("domain", spender.domain),
    ]
    return [
        Share(kind, name, shares.cap_of(kind, spender.tier, day_micros)) for kind, name in named if name is not None
    ]


def _key(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def organisation_of(domain: str) -> str:
    """The registered part of a domain, as far as it is known: hosts below it are free."""
    labels = domain.rstrip(".").split(".")
    is_national = len(labels) > 2 and len(labels[-1]) == _COUNTRY and len(labels[-2]) <= _SHORT_SUFFIX
    return ".".join(labels[-3 if is_national else -2 :])


def why_share_ended(kind: ShareKind, tier: PolicyTier) -> str:
    """Why a message waits, without names."""
    budget = "today's budget for the language model"
    match kind, tier:
        case "sender", _:
            reason = f"this sender's mail has used up its share of {budget}"
        case "domain", _:
            reason = f"mail of this sender's domain has used up its share of {budget}"
        case "tier", "default":
            reason = f"the rest of {budget} is kept for contacts and mail written to you"
        case "tier", _:
            reason = f"the rest of {budget} is kept for your contacts"
    return f"{reason}; it is decided after midnight, if there is room then, or stays where it is"
