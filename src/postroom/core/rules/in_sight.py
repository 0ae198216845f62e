"""Mail that only its owner hides: from contacts, answers to the owner, and about security, health or finance.

A model reads the text of strangers, and may follow their instructions. So it does not hide such mail by itself.
"""

from postroom.core.mail.categories import categories_of
from postroom.core.mail.ingestion import IngestionFacts, excerpt
from postroom.core.mail.security import is_security_notice
from postroom.core.mail.tiers import Known
from postroom.core.queue.envelope import PolicyTier
from postroom.core.rules.facts import MessageFacts

KEPT_CATEGORIES = ("finance", "health")
_ONLY_PEOPLE = "and only you and your rules hide such mail"


def message_categories(facts: MessageFacts) -> frozenset[str]:
    """The categories of a stored message, by its content."""
    seen = IngestionFacts(facts.sender, facts.headers, text=excerpt(facts.body_text))
    return frozenset(categories_of(seen, Known(facts.own_addresses or frozenset())))


def why_kept_in_sight(facts: MessageFacts, policy_tier: PolicyTier) -> str | None:
    """Why automation does not hide the message; None if it may. The highest tier is that of contacts and answers."""
    if facts.reply_to_mine:
        return f"it answers a message of yours, {_ONLY_PEOPLE}"
    if facts.sender_in_contacts or policy_tier == "high_priority":
        return f"it is from one of your contacts, {_ONLY_PEOPLE}"
    if is_security_notice(facts.subject, facts.body_text):
        return f"it is about the security of an account, {_ONLY_PEOPLE}"
    found = message_categories(facts) | (facts.categories or frozenset())
    for category in KEPT_CATEGORIES:
        if category in found:
            return f"it is about {category}, {_ONLY_PEOPLE}"
    return None
