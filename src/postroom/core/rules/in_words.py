"""The conditions of a rule in words, for people who read pages, bounded in length."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

MOST_PARTS = 8
DEEPEST = 4
_SAYS: Mapping[str, str] = {
    "sender_email": "the sender is {}",
    "sender_domain": "the sender is from {}",
    "from": "it is from {}",
    "to": "it is to {}",
    "to_header": "To has {}",
    "cc": "Cc has {}",
    "bcc": "Bcc has {}",
    "reply_to": "Reply-To has {}",
    "delivered_to": "it was delivered to {}",
    "from_name": "the sender's name has “{}”",
    "to_name": "a recipient's name has “{}”",
    "from_words": "From has “{}”",
    "to_words": "To or Cc has “{}”",
    "cc_words": "Cc has “{}”",
    "bcc_words": "Bcc has “{}”",
    "reply_to_words": "Reply-To has “{}”",
    "words": "it has the words “{}”",
    "subject_words": "the subject has the words “{}”",
    "body_words": "the text has the words “{}”",
    "subject_contains": "the subject contains “{}”",
    "body_contains": "the text contains “{}”",
    "subject_regex": "the subject matches the pattern {}",
    "language": "its language is {}",
    "list": "it is from the list {}",
    "list_id": "List-Id contains {}",
    "list_words": "List-Id has the words “{}”",
    "label_present": "it has the label “{}”",
    "category": "its category is {}",
    "attachment_name": "an attachment's name has “{}”",
    "attachment_type": "an attachment is of type {}",
    "larger": "it is larger than {}",
    "smaller": "it is smaller than {}",
    "older_than": "it is older than {}",
    "newer_than": "it is newer than {}",
    "sent_before": "it was sent before {}",
    "sent_after": "it was sent after {}",
}
_YES_OR_NO: Mapping[str, tuple[str, str]] = {
    "from_me": ("it is from me", "it is not from me"),
    "to_me": ("it is to me", "it is not to me"),
    "cc_me": ("I am in Cc", "I am not in Cc"),
    "bcc_me": ("I am in Bcc", "I am not in Bcc"),
    "sender_in_contacts": ("the sender is a contact", "the sender is no contact"),
    "sender_seen_before": ("the sender wrote before", "the sender never wrote before"),
    "reply_to_mine": ("it answers a message of mine", "it answers no message of mine"),
    "has_attachment": ("it has an attachment", "it has no attachment"),
}


def conditions_in_words(conditions: object, depth: int = 0) -> str:
    """Return the conditions as a clause, such as `the sender is from shop.example and not (the subject has …)`.

    Stored conditions may be broken; those parts are named as they are. Many or deep ones are cut short.
    """
    if not isinstance(conditions, Mapping) or len(cast("Mapping[Any, Any]", conditions)) != 1:
        return "a condition that is not valid"
    ((kind, argument),) = cast("Mapping[object, object]", conditions).items()
    match kind, argument:
        case "and" | "or", list():
            return _joined(f" {kind} ", cast("list[object]", argument), depth)
        case "not", Mapping():
            inner = cast("Mapping[Any, Any]", argument)
            return f"not ({conditions_in_words(inner, depth + 1)})" if depth < DEEPEST else "not (…)"
        case _:
            return _leaf(str(kind), argument)


def _joined(word: str, parts: Sequence[object], depth: int) -> str:
    if depth > DEEPEST:
        return "(…)"
    said = [_in_brackets(each, conditions_in_words(each, depth + 1)) for each in parts[:MOST_PARTS]]
    more = len(parts) - len(said)
    return word.join([*said, f"{more:,} more"] if more else said)


def _in_brackets(part: object, said: str) -> str:
    """Put a list of several inside another into brackets."""
    if isinstance(part, Mapping) and {"and", "or"} & set(cast("Mapping[object, object]", part)):
        return f"({said})"
    return said


def _leaf(kind: str, argument: object) -> str:
    if kind in _YES_OR_NO:
        return _YES_OR_NO[kind][0 if argument is True else 1]
    if kind in _SAYS and isinstance(argument, str | int):
        return _SAYS[kind].format(argument if isinstance(argument, str) else f"{argument:,} bytes")
    if kind in ("header_match", "address_match") and isinstance(argument, Mapping):
        given = cast("Mapping[object, object]", argument)
        name, pattern = given.get("name"), given.get("pattern")
        return f"the header {name} is present" if pattern is None else f"the header {name} matches {pattern}"
    return f"{kind} {argument}"
