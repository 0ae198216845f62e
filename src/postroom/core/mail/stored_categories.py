"""The categories of a message, as they are stored with it."""

from postroom.core.mail.categories import categories_of
from postroom.core.mail.ingestion import IngestionFacts, excerpt
from postroom.core.mail.message import MailContent
from postroom.core.mail.tiers import Known
from postroom.core.queue.envelope import PolicyTier


def stored_categories(mail: MailContent, own_address: str, policy_tier: PolicyTier) -> tuple[str, ...]:
    """The categories. Mail of the highest tier is correspondence: its sender is known to the user."""
    facts = IngestionFacts(mail.sender, mail.headers, text=excerpt(mail.body_text))
    known = Known(frozenset({own_address.lower()}), frozenset({mail.sender} if policy_tier == "high_priority" else ()))
    return tuple(categories_of(facts, known))
