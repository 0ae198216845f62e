"""Why a rule matches a message, or does not: in words, for the person who wrote it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, cast
from uuid import UUID

from postroom.core.rules.condition_spec import MOST_SHOWN
from postroom.core.rules.conditions import SPECS, All, AnyOf, Node, Not, as_test, read_conditions
from postroom.core.rules.facts import MessageFacts, Seen
from postroom.core.rules.leaf import BrokenRule, Leaf
from postroom.core.rules.rule import Rule, kinds_used, read_scope

Result = Literal["matches", "does not match", "is for other mail", "is skipped", "is broken"]


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
            return f"{_words(node)}: {SPECS[node.kind].observed(node.argument, seen)}"
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
    if isinstance(argument, Mapping):
        given = cast("Mapping[str, str]", argument)
        pattern = f" ~ {given['pattern']}" if "pattern" in given else ""
        return f"{leaf.kind} {given['name']}{pattern}"
    return f"{leaf.kind} {str(argument).lower() if isinstance(argument, bool) else argument}"
