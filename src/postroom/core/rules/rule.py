"""Deterministic rules: their scope, order and actions.

The conditions are a tree (core/rules/conditions.py). An invalid rule is broken for every message: the caller disables
it with the reason and continues with the others. core/rules/rulebook.py applies many rules at once.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args
from uuid import UUID

from postroom.core.actions.action import DecidedType
from postroom.core.actions.steps import Joined, joined, steps_of
from postroom.core.mail.addresses import canonical, canonical_domain
from postroom.core.rules.conditions import DEEPEST, KINDS
from postroom.core.rules.facts import Seen
from postroom.core.rules.leaf import BrokenRule, Key, suggestion

ScopeName = Literal["global", "account", "domain", "sender"]
RuleMode = Literal["active", "shadow"]
DecisionSource = Literal["deterministic", "llm", "none"]
"""The source of a decision about a message: a rule, the model, or neither."""
SCOPES: tuple[ScopeName, ...] = get_args(ScopeName)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule, as the engine uses it."""

    id: UUID
    name: str
    scope: str
    scope_ref: str | None
    priority: int
    conditions: Mapping[str, Any]
    action_type: DecidedType
    parameters: Mapping[str, Any]
    shadow: bool = False
    needs_approval: bool = False
    continues: bool = False
    """Whether the rules after it are tried too, and add their actions."""

    @property
    def order(self) -> tuple[int, UUID]:
        """The sort key: lower priority first, then the order of creation (ids sort by time)."""
        return self.priority, self.id


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of the rules for a message.

    `matched` is the first active rule that matches; `others` are those that add their actions, if it lets them
    (`continues`). `shadowed` are the rules in shadow that match and come before the last of these. `broken` are all
    invalid rules for any message, with the reason.
    """

    matched: Rule | None
    broken: tuple[tuple[Rule, str], ...] = ()
    shadowed: tuple[Rule, ...] = ()
    others: tuple[Rule, ...] = ()

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules that decide, in order."""
        return () if self.matched is None else (self.matched, *self.others)

    @property
    def joined(self) -> Joined:
        """All that these rules do."""
        return joined((rule.name, steps_of(rule.action_type, rule.parameters)) for rule in self.rules)


@dataclass(frozen=True, slots=True)
class Scope:
    """Which mail a rule is for, and the index key that such mail has; both None for all mail."""

    test: "ScopeTest | None"
    key: Key | None


@dataclass(frozen=True, slots=True)
class ScopeTest:
    """Tests whether a message to an account is in the scope."""

    scope: str
    wanted: str

    def __call__(self, account_id: str, seen: Seen) -> bool:
        match self.scope:
            case "account":
                return account_id == self.wanted
            case "domain":
                return seen.domain == self.wanted
            case _:
                return seen.sender == self.wanted


def read_scope(scope: str, scope_ref: str | None) -> Scope:
    """Parse a scope. Raises BrokenRule."""
    if scope not in SCOPES:
        raise BrokenRule("scope", f"{scope!r} is unknown", suggestion(scope, SCOPES))
    if scope == "global":
        if scope_ref is not None:
            raise BrokenRule("scope_ref", "is given for a rule for all mail", "leave it out, or give a scope")
        return Scope(None, None)
    wanted = _scope_ref(scope, scope_ref or "")
    if not wanted:
        example = {"account": "the id of an account", "domain": "shop.example", "sender": "ida@shop.example"}[scope]
        raise BrokenRule("scope_ref", f"does not name the object of the scope {scope}", f"give {example}")
    return Scope(ScopeTest(scope, wanted), (scope, wanted))


def _scope_ref(scope: str, given: str) -> str | None:
    match scope:
        case "account":
            try:
                return str(UUID(given))
            except ValueError:
                return None
        case "domain":
            return canonical_domain(given.strip().removeprefix("@")) if "@" not in given[1:] else None
        case _:
            return canonical(given)


def labels_used(conditions: object, parameters: Mapping[str, Any]) -> frozenset[str]:
    """The labels, by name or id, that a rule looks at or acts with. Invalid parts are ignored."""
    acted_with = [argument for name, argument in _inside(parameters) if name == "label"]
    return labels_looked_at(conditions) | frozenset(label for label in acted_with if isinstance(label, str))


def labels_looked_at(conditions: object) -> frozenset[str]:
    """The labels, by name or id, that a rule looks at."""
    looked_at = [argument for kind, argument in _inside(conditions) if kind == "label_present"]
    return frozenset(label for label in looked_at if isinstance(label, str))


def kinds_used(conditions: object) -> frozenset[str]:
    """The kinds of conditions in a rule. Invalid parts are ignored."""
    return frozenset(kind for kind, _ in _inside(conditions) if isinstance(kind, str) and kind in KINDS)


def _inside(conditions: object) -> Iterator[tuple[object, object]]:
    """Every condition in the tree with its argument, level by level, to the greatest depth allowed."""
    level: list[object] = [conditions]
    for _ in range(DEEPEST + 1):
        deeper: list[object] = []
        for each in level:
            if isinstance(each, Mapping):
                found = cast("Mapping[object, object]", each)
                yield from found.items()
                deeper += found.values()
            elif isinstance(each, list):
                deeper += cast("list[object]", each)
        level = deeper
