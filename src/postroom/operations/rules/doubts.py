"""Doubts about what rules would do with a message: reasons why a person may want something else.

A rule is always certain of itself, so doubts come from the message: who sent it, to whom, and what it is about.
"""

from collections.abc import Sequence
from typing import NamedTuple

from postroom.core.rules.facts import MessageFacts
from postroom.core.rules.starter_words import SECURITY
from postroom.core.rules.words import folded

_SECURITY = tuple(folded(each) for each in SECURITY)
_TOPICS = ("finance", "health", "travel")


class Doubt(NamedTuple):
    """A reason for doubt. The heaviest are shown first."""

    weight: int
    reason: str


def doubts_about(
    facts: MessageFacts,
    policy_tier: str,
    categories: Sequence[str],
    left_out: Sequence[str],
    *,
    leaves: bool,
    waits: bool,
) -> list[Doubt]:
    """The doubts about a decision of rules. `leaves` says that the message would leave the inbox, `waits` that safety
    asks a person first; `left_out` are the parts of rules that contradict earlier ones.
    """
    found = [Doubt(1, each) for each in left_out]
    if leaves:
        found += _about_leaving(facts, policy_tier, categories)
    if waits:
        found.append(Doubt(2, "it would need your approval"))
    return sorted(found, reverse=True)


def _about_leaving(facts: MessageFacts, policy_tier: str, categories: Sequence[str]) -> list[Doubt]:
    found: list[Doubt] = []
    subject = folded(facts.subject)
    if any(phrase in subject for phrase in _SECURITY):
        found.append(Doubt(6, "the subject sounds like a security alert"))
    if facts.sender_in_contacts:
        found.append(Doubt(5, "the sender is one of your contacts"))
    if facts.reply_to_mine:
        found.append(Doubt(5, "it answers a message of yours"))
    if policy_tier == "interactive":
        found.append(Doubt(4, "it is addressed to you and not marked as bulk"))
    if topics := [each for each in _TOPICS if each in categories]:
        found.append(Doubt(3, f"it seems to be about {' and '.join(topics)}"))
    if facts.attachments and facts.has_attachment:
        found.append(Doubt(1, "it has an attachment"))
    return found
