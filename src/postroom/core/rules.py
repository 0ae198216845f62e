"""Deterministic rules: a tree of conditions over a message, evaluated without side effects.

    {"and": [{"sender_domain": "shop.example"}, {"not": {"subject_contains": "invoice"}}]}

Regexes are RE2: no pattern, however hostile, takes more than linear time. A condition that cannot be understood raises
BrokenRule, upon which the caller disables the rule with that reason and goes on with the next.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

import re2

from postroom.core.errors import PostroomError
from postroom.core.tiers import Headers, values

DEEPEST = 20


class BrokenRule(PostroomError):
    """A rule whose conditions make no sense."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What conditions look at."""

    sender: str
    subject: str
    headers: Headers
    labels: frozenset[str]
    body_text: str = ""
    has_attachment: bool = False

    @property
    def domain(self) -> str:
        return self.sender.rpartition("@")[2]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule, as the engine needs it."""

    id: UUID
    name: str
    scope: str
    scope_ref: str | None
    priority: int
    conditions: Mapping[str, Any]
    action_type: str
    parameters: Mapping[str, Any]
    shadow: bool = False
    needs_approval: bool = False

    def applies_to(self, account_id: UUID, message: Subject) -> bool:
        """Whether the message is in the rule's scope."""
        match self.scope:
            case "global":
                return True
            case "account":
                return self.scope_ref == str(account_id)
            case "domain":
                return (self.scope_ref or "").lower() == message.domain
            case "sender":
                return (self.scope_ref or "").lower() == message.sender
            case _:
                raise BrokenRule(f"scope {self.scope!r} is unknown; use global, account, domain or sender")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The first rule that matched, if any, and the rules that turned out to be broken, with why."""

    matched: Rule | None
    broken: tuple[tuple[Rule, str], ...]


def first_match(rules: Iterable[Rule], account_id: UUID, message: Subject) -> Outcome:
    """Lower priority first; rules of equal priority in the order they were made (their ids sort by time)."""
    broken: list[tuple[Rule, str]] = []
    for rule in sorted(rules, key=lambda each: (each.priority, each.id)):
        try:
            if rule.applies_to(account_id, message) and matches(rule.conditions, message):
                return Outcome(rule, tuple(broken))
        except BrokenRule as error:
            broken.append((rule, str(error)))
    return Outcome(None, tuple(broken))


def matches(condition: object, message: Subject, depth: int = 0) -> bool:
    """Whether the tree holds for the message."""
    if depth > DEEPEST:
        raise BrokenRule(f"conditions are nested deeper than {DEEPEST}; flatten them")
    if not isinstance(condition, Mapping) or len(cast("Mapping[str, object]", condition)) != 1:
        raise BrokenRule("a condition is an object with one key, such as {'sender_domain': 'shop.example'}")
    ((kind, argument),) = cast("Mapping[str, object]", condition).items()
    match kind:
        case "and":
            return all(matches(each, message, depth + 1) for each in _list(kind, argument))
        case "or":
            return any(matches(each, message, depth + 1) for each in _list(kind, argument))
        case "not":
            return not matches(argument, message, depth + 1)
        case "sender_email":
            return message.sender == _text(kind, argument).lower()
        case "sender_domain":
            return message.domain == _text(kind, argument).lower()
        case "subject_contains":
            return _text(kind, argument).casefold() in message.subject.casefold()
        case "subject_regex":
            return _searches(_text(kind, argument), message.subject)
        case "body_contains":
            return _text(kind, argument).casefold() in message.body_text.casefold()
        case "header_match":
            return _header_matches(argument, message.headers)
        case "label_present":
            return _text(kind, argument) in message.labels
        case "list_id":
            return any(_text(kind, argument).lower() in value.lower() for value in values(message.headers, "list-id"))
        case "has_attachment":
            if not isinstance(argument, bool):
                raise BrokenRule("has_attachment takes true or false")
            return message.has_attachment is argument
        case _:
            raise BrokenRule(f"condition {kind!r} is unknown; known are {', '.join(KINDS)}")


KINDS: Sequence[str] = (
    "and",
    "or",
    "not",
    "sender_email",
    "sender_domain",
    "subject_contains",
    "subject_regex",
    "body_contains",
    "header_match",
    "label_present",
    "list_id",
    "has_attachment",
)


def _header_matches(argument: object, headers: Headers) -> bool:
    """`{"name": "Precedence"}` asks whether it is there, with `"pattern"` whether a value fits."""
    if not isinstance(argument, Mapping):
        raise BrokenRule("header_match takes an object with 'name' and, optionally, 'pattern'")
    wanted = cast("Mapping[str, object]", argument)
    found = values(headers, _text("header_match.name", wanted.get("name")).lower())
    if "pattern" not in wanted:
        return bool(found)
    return any(_searches(_text("header_match.pattern", wanted["pattern"]), value) for value in found)


def _searches(pattern: str, text: str) -> bool:
    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False  # the error reaches the user as the reason, not the log
    try:
        return re2.compile(pattern, options).search(text) is not None
    except re2.error as error:
        raise BrokenRule(f"the pattern {pattern!r} is no RE2 expression ({error}); mend it") from None


def _text(kind: str, argument: object) -> str:
    if not isinstance(argument, str) or not argument:
        raise BrokenRule(f"{kind} takes a text that is not empty")
    return argument


def _list(kind: str, argument: object) -> list[object]:
    if not isinstance(argument, list) or not argument:
        raise BrokenRule(f"{kind} takes a list of conditions that is not empty")
    return cast("list[object]", argument)


def labels_used(conditions: object, parameters: Mapping[str, Any]) -> frozenset[str]:
    """The labels, by name or id, that a rule looks at or acts with. What makes no sense names none."""
    found = {label} if isinstance(label := parameters.get("label"), str) else set[str]()
    level: list[object] = [conditions]
    for _ in range(DEEPEST + 1):
        deeper: list[object] = []
        for each in level:
            if isinstance(each, Mapping):
                for kind, argument in cast("Mapping[str, object]", each).items():
                    if kind == "label_present" and isinstance(argument, str):
                        found.add(argument)
                    deeper.append(argument)
            elif isinstance(each, list):
                deeper += cast("list[object]", each)
        level = deeper
    return frozenset(found)
