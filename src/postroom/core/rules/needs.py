"""The parts of a message that each kind of condition needs.

While a part is missing, such a condition is neither true nor false, and rules that use it are skipped.
"""

from collections.abc import Callable, Mapping

from postroom.core.rules.facts import MessageFacts

READ_THE_TEXT = frozenset({"body_contains", "body_words", "words", "language"})
NEED_THE_TEXT = READ_THE_TEXT | {"has_attachment", "attachment_name", "attachment_type"}
NEED_THE_HEADERS = frozenset(
    {
        *("header_match", "address_match", "label_present", "category", "list", "list_id", "list_words"),
        *("from", "from_me", "from_name", "from_words", "to", "to_header", "to_me", "to_name", "to_words"),
        *("cc", "cc_me", "cc_words", "bcc", "bcc_me", "bcc_words"),
        *("reply_to", "reply_to_words", "delivered_to"),
    }
)
ABOUT_RECIPIENTS = frozenset({"to", "to_me"})
ABOUT_THE_SENDER = frozenset({"sender_in_contacts", "sender_seen_before"})
# Facts that are not known of all mail: of what was stored by an earlier version, or read from a file.
_FACTS: Mapping[Callable[[MessageFacts], object], frozenset[str]] = {
    lambda facts: facts.size: frozenset({"larger", "smaller"}),
    lambda facts: facts.attachments: frozenset({"attachment_name", "attachment_type", "words"}),
    lambda facts: facts.own_addresses: frozenset({"from_me", "to_me", "cc_me", "bcc_me"}),
    lambda facts: facts.categories: frozenset({"category"}),
    lambda facts: facts.sender_in_contacts: frozenset({"sender_in_contacts"}),
    lambda facts: facts.sender_seen_before: frozenset({"sender_seen_before"}),
    lambda facts: facts.reply_to_mine: frozenset({"reply_to_mine"}),
}


def unknown_kinds(facts: MessageFacts) -> frozenset[str]:
    """The kinds of conditions that need a fact which is not known."""
    return frozenset[str]().union(*(kinds for fact, kinds in _FACTS.items() if fact(facts) is None))
