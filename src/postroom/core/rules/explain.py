"""Why a rule matches a message, or does not: in words, for the person who wrote it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, cast
from uuid import UUID

from postroom.core.rules.conditions import (
    All,
    AnyOf,
    BrokenRule,
    Leaf,
    MessageFacts,
    Node,
    Not,
    Seen,
    as_test,
    read_conditions,
)
from postroom.core.rules.people import ADDRESS_KINDS
from postroom.core.rules.rule import Rule, kinds_used, read_scope
from postroom.core.rules.texts import WORD_FIELDS

Result = Literal["matches", "does not match", "is for other mail", "is skipped", "is broken"]
MOST_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Explained:
    """The result of one rule, and why."""

    rule: Rule
    result: Result
    why: str


def explain(
    rule: Rule, account_id: UUID | None, message: MessageFacts, now: datetime, hidden: frozenset[str] = frozenset()
) -> Explained:
    """Explain the rule by itself, regardless of the rules before it. `hidden` is as in `Rulebook.decide`."""
    seen = Seen(message, now)
    try:
        scope, node = read_scope(rule.scope, rule.scope_ref), read_conditions(rule.conditions)
    except BrokenRule as broken:
        return Explained(rule, "is broken", str(broken))
    if scope.test is not None and not scope.test(str(account_id), seen):
        return Explained(rule, "is for other mail", f"its scope is the {rule.scope} {rule.scope_ref}")
    if unknown := sorted(hidden & kinds_used(rule.conditions)):
        return Explained(rule, "is skipped", f"{unknown[0]} needs a part of this message that is not known here")
    if as_test(node)(seen):
        return Explained(rule, "matches", _holding(node, seen))
    return Explained(rule, "does not match", _failing(node, seen))


def _failing(node: Node, seen: Seen) -> str:
    """Why the condition does not hold."""
    match node:
        case Leaf():
            return f"{_words(node)}: {_observed(node, seen)}"
        case Not(part):
            return f"not, but {_holding(part, seen)}"
        case All(parts):
            return next(_failing(part, seen) for part in parts if not as_test(part)(seen))
        case AnyOf(parts):
            reasons = "; ".join(_failing(part, seen) for part in parts[:MOST_SHOWN])
            return reasons if len(parts) <= MOST_SHOWN else f"{reasons}; and {len(parts) - MOST_SHOWN} more"


def _holding(node: Node, seen: Seen) -> str:
    """Why the condition holds."""
    match node:
        case Leaf():
            return _words(node)
        case Not(part):
            return f"not {_reason_text(part)}"
        case All(parts):
            return ", ".join(_holding(part, seen) for part in parts)
        case AnyOf(parts):
            return next(_holding(part, seen) for part in parts if as_test(part)(seen))


def _reason_text(node: Node) -> str:
    match node:
        case Leaf():
            return _words(node)
        case Not(part):
            return f"not {_reason_text(part)}"
        case All(parts):
            return f"({' and '.join(map(_reason_text, parts))})"
        case AnyOf(parts):
            return f"({' or '.join(map(_reason_text, parts))})"


def _words(leaf: Leaf) -> str:
    argument = leaf.argument
    if leaf.kind in ("header_match", "address_match"):
        given = cast("Mapping[str, str]", argument)
        pattern = f" ~ {given['pattern']}" if "pattern" in given else ""
        return f"{leaf.kind} {given['name']}{pattern}"
    return f"{leaf.kind} {str(argument).lower() if isinstance(argument, bool) else argument}"


def _observed(leaf: Leaf, seen: Seen) -> str:
    message = seen.message
    match leaf.kind:
        case "sender_email" | "sender_domain" | "from_me":
            return f"it is from {seen.sender or 'nobody'}"
        case "to" | "to_me":
            return f"it is to {', '.join(message.to[:MOST_SHOWN]) or 'nobody'}"
        case kind if kind in ADDRESS_KINDS:
            return f"it has {', '.join(sorted(seen.addresses[kind])[:MOST_SHOWN]) or 'no address there'}"
        case "label_present":
            return f"it has {', '.join(sorted(message.labels)) or 'no label'}"
        case "has_attachment":
            return "it has one" if message.has_attachment else "it has none"
        case "attachment_type" | "attachment_name":
            names = [f"{name} ({kind})" for name, kind in message.attachments or ()]
            return f"it has {', '.join(names[:MOST_SHOWN]) or 'no attachment'}"
        case "larger" | "smaller":
            return "its size is unknown" if message.size is None else f"it has {message.size:,} bytes"
        case "language":
            return f"the language of its text is {seen.language}"
        case "category":
            return f"its categories are {', '.join(sorted(message.categories or ())) or 'none'}"
        case "sender_in_contacts" | "sender_seen_before" | "reply_to_mine" | "cc_me" | "bcc_me":
            return "it is not so" if leaf.argument else "it is so"
        case "older_than" | "newer_than" | "sent_before" | "sent_after":
            return "it is unknown when it was sent" if message.sent_at is None else f"it was sent at {message.sent_at}"
        case "header_match" | "address_match" | "list" | "list_id" | "list_words":
            about = leaf.argument
            name = str(cast("Mapping[str, str]", about)["name"]).lower() if isinstance(about, Mapping) else "list-id"
            return "no value of it matches" if name in seen.headers else "it is missing"
        case "body_contains" | "body_words":
            return "it is not in the text"
        case "words":
            return "they are not all in its subject, text, people or names of attachments"
        case kind if kind in WORD_FIELDS and kind != "subject_words":
            return "no name or address there has it"
        case _:
            return "it is not in the subject"
