"""The kinds of conditions that need a part of a message.

While a part is missing, such a condition is neither true nor false, and rules that use it are skipped.
"""

from postroom.core.rules.condition_spec import FACTS, Need
from postroom.core.rules.conditions import SPECS
from postroom.core.rules.facts import MessageFacts


def kinds_needing(*needs: Need) -> frozenset[str]:
    """The kinds that need one of these parts."""
    return frozenset(kind for kind, spec in SPECS.items() if not spec.needs.isdisjoint(needs))


READ_THE_TEXT = kinds_needing("text")
NEED_THE_TEXT = kinds_needing("text", "files")
NEED_THE_HEADERS = kinds_needing("headers")
ABOUT_RECIPIENTS = kinds_needing("recipients")
ABOUT_CONTACTS = kinds_needing("sender_in_contacts")
ABOUT_THE_SENDER = kinds_needing("sender_in_contacts", "sender_seen_before")
_NEEDING_FACTS = {fact: kinds_needing(fact) for fact in FACTS}


def unknown_kinds(facts: MessageFacts) -> frozenset[str]:
    """The kinds of conditions that need a fact which is not known."""
    return frozenset[str]().union(*(kinds for fact, kinds in _NEEDING_FACTS.items() if getattr(facts, fact) is None))
