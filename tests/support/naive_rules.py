"""Rules tried one after another, each read anew for every message: slow, short, and plainly right.

What core/rules/rulebook.py decides is compared with this. Nothing here is taken from the product but the data.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import re2

from postroom.core.mail.language import language_of
from postroom.core.rules.facts import MessageFacts
from postroom.core.rules.rule import Rule
from support.naive_words import has_phrases

HEADERS = {
    "from": ("from",),
    "to": ("to", "cc"),
    "to_header": ("to",),
    "cc": ("cc",),
    "bcc": ("bcc",),
    "reply_to": ("reply-to",),
    "delivered_to": ("delivered-to",),
}


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
        case "newer_than":
            return message.sent_at is not None and not holds({"older_than": argument}, message, now)
        case "sent_before" | "sent_after":
            given = datetime.fromisoformat(argument).replace(tzinfo=UTC)
            return message.sent_at is not None and (message.sent_at < given) == (kind == "sent_before")
        case "larger" | "smaller":
            size = int(argument[:-1]) * 1024 if str(argument).endswith("K") else int(argument)
            return message.size is not None and (message.size > size if kind == "larger" else message.size < size)
        case "attachment_type":
            types = [each for _, each in message.attachments or ()]
            return any(each == argument or f"{each.split('/')[0]}/*" == argument for each in types)
        case "attachment_name":
            return any(has_phrases(argument, [name]) for name, _ in message.attachments or ())
        case "category" if argument == "promotions":
            return "CATEGORY_PROMOTIONS" in message.labels
        case "category":
            return argument in (message.categories or ())
        case "language":
            return language_of(message.body_text) == argument
        case "sender_in_contacts" | "sender_seen_before" | "reply_to_mine":
            return getattr(message, kind) is argument
        case "list":
            ids = [value.strip("<>").lower() for value in _values(message, "list-id")]
            return argument.lower().replace("@", ".") in ids
        case _:
            return _about_people(kind, argument, message)


def _about_people(kind: str, argument: Any, message: MessageFacts) -> bool:
    """Headers here have one mailbox each, as `Name <address>`."""
    mailboxes = {
        each: [
            (value.rpartition("<")[0], value.rpartition("<")[2].strip("> ").lower())
            for name in names
            for value in _values(message, name)
        ]
        for each, names in HEADERS.items()
    }
    match kind:
        case "from_me" | "cc_me" | "bcc_me":
            found = [address for _, address in mailboxes[kind.removesuffix("_me")]] + [message.sender]
            return (
                any(each in (message.own_addresses or ()) for each in found[: None if kind == "from_me" else -1])
                is argument
            )
        case "to_me":
            return any(each in (message.own_addresses or ()) for each in message.to) is argument
        case "from_name" | "to_name":
            return any(has_phrases(argument, [name]) for name, _ in mailboxes[kind.removesuffix("_name")])
        case "subject_words":
            return has_phrases(argument, [message.subject])
        case "body_words":
            return has_phrases(argument, [message.body_text])
        case "words":
            people = [text for each in ("from", "to", "bcc") for mailbox in mailboxes[each] for text in mailbox]
            attached = [name for name, _ in message.attachments or ()]
            return has_phrases(argument, [message.subject, message.body_text, *people, *attached])
        case "list_words":
            return has_phrases(argument, _values(message, "list-id"))
        case _ if kind.endswith("_words"):
            return has_phrases(
                argument, [text for mailbox in mailboxes[kind.removesuffix("_words")] for text in mailbox]
            )
        case _:
            found = [address for _, address in mailboxes[kind]] + ([message.sender] if kind == "from" else [])
            return any(
                each.endswith(argument.lower()) if argument.startswith("@") else each == argument.lower()
                for each in found
            )


def _values(message: MessageFacts, wanted: str) -> list[str]:
    return [value for name, value in message.headers if name.lower() == wanted]


def _search(pattern: str, text: str) -> bool:
    options = re2.Options()
    options.case_sensitive = False
    return re2.compile(pattern, options).search(text) is not None
