"""Rules tried one after another, each read anew for every message: slow, short, and plainly right.

What core/rules/rulebook.py decides is compared with this. Nothing here is taken from the product but the data.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import re2

from postroom.core.rules.rule import MessageFacts, Rule


def naive_first_match(
    rules: Iterable[Rule], account_id: UUID, message: MessageFacts, now: datetime
) -> tuple[Rule | None, list[Rule]]:
    """The first rule in use that matches, and the rules in shadow that match before it."""
    shadowed: list[Rule] = []
    for rule in sorted(rules, key=lambda each: (each.priority, each.id)):
        if in_scope(rule, account_id, message) and holds(rule.conditions, message, now):
            if not rule.shadow:
                return rule, shadowed
            shadowed.append(rule)
    return None, shadowed


def in_scope(rule: Rule, account_id: UUID, message: MessageFacts) -> bool:
    match rule.scope:
        case "global":
            return True
        case "account":
            return rule.scope_ref == str(account_id)
        case "domain":
            return (rule.scope_ref or "").lower() == message.sender.lower().rpartition("@")[2]
        case _:
            return (rule.scope_ref or "").lower() == message.sender.lower()


def holds(condition: Any, message: MessageFacts, now: datetime) -> bool:
    ((kind, argument),) = condition.items()
    match kind:
        case "and":
            return all(holds(each, message, now) for each in argument)
        case "or":
            return any(holds(each, message, now) for each in argument)
        case "not":
            return not holds(argument, message, now)
        case "sender_email":
            return message.sender.lower() == argument.lower()
        case "sender_domain":
            return message.sender.lower().rpartition("@")[2] == argument.lower()
        case "to" if argument.startswith("@"):
            return any(each.rpartition("@")[2] == argument[1:].lower() for each in message.to)
        case "to":
            return argument.lower() in message.to
        case "subject_contains":
            return argument.casefold() in message.subject.casefold()
        case "body_contains":
            return argument.casefold() in message.body_text.casefold()
        case "subject_regex":
            return _search(argument, message.subject)
        case "header_match":
            found = [value for name, value in message.headers if name.lower() == argument["name"].lower()]
            return any(_search(argument["pattern"], value) for value in found) if "pattern" in argument else bool(found)
        case "label_present":
            return argument in message.labels or argument.casefold() in message.labels
        case "list_id":
            found = [value for name, value in message.headers if name.lower() == "list-id"]
            return any(argument.casefold() in value.casefold() for value in found)
        case "has_attachment":
            return message.has_attachment == argument
        case "older_than":
            unit = {"h": "hours", "d": "days", "w": "weeks"}[argument[-1]]
            age = timedelta(**{unit: int(argument[:-1])})
            return message.sent_at is not None and now - message.sent_at >= age
        case _:
            raise AssertionError(kind)


def _search(pattern: str, text: str) -> bool:
    options = re2.Options()
    options.case_sensitive = False
    return re2.compile(pattern, options).search(text) is not None
