"""Rules as they are kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from postroom.core.rules import Rule
from postroom.store.codecs import as_uuid, from_json, json_text
from postroom.store.database import Script, query, sql, transaction


@dataclass(frozen=True, slots=True)
class RuleView:
    """A rule as it is shown."""

    id: UUID
    name: str
    description: str
    scope: str
    scope_ref: str | None
    priority: int
    conditions: Mapping[str, Any]
    action: str
    parameters: Mapping[str, Any]
    mode: str
    enabled: bool
    disabled_reason: str | None


@dataclass(frozen=True, slots=True)
class NewRule:
    """A rule as it is asked for."""

    id: UUID
    name: str
    description: str
    conditions: Mapping[str, Any]
    action_type: str
    parameters: Mapping[str, Any]
    scope: str = "global"
    scope_ref: str | None = None
    priority: int = 100
    origin: str = "user"


@transaction
def add_rules(rules: Sequence[NewRule], now: datetime) -> Script[int]:
    """Adds the rules whose names are new; returns how many."""
    added = 0
    for rule in rules:
        rows = yield sql(
            "insert_rule",
            rule.id,
            rule.name,
            rule.description,
            rule.scope,
            rule.scope_ref,
            rule.priority,
            json_text(rule.conditions),
            rule.action_type,
            json_text(rule.parameters),
            rule.origin,
            now,
        )
        added += len(rows)
    return added


@query
def enabled_rules() -> Script[list[Rule]]:
    """What the engine evaluates, in its order."""
    rows = yield sql("select_enabled_rules")
    return [
        Rule(
            as_uuid(id),
            name,
            scope,
            scope_ref,
            priority,
            from_json(conditions),
            action_type,
            from_json(parameters),
            mode == "shadow",
            bool(needs_approval),
        )
        for id, name, scope, scope_ref, priority, conditions, action_type, parameters, mode, needs_approval in rows
    ]


@query
def list_rules() -> Script[list[RuleView]]:
    """Every rule, in the order of evaluation."""
    rows = yield sql("select_rules")
    return [_view(row) for row in rows]


def _view(row: Sequence[Any]) -> RuleView:
    id, name, description, scope, scope_ref, priority, conditions, action, parameters, mode, enabled, reason = row
    return RuleView(
        as_uuid(id),
        name,
        description,
        scope,
        scope_ref,
        priority,
        from_json(conditions),
        action,
        from_json(parameters),
        mode,
        bool(enabled),
        reason,
    )


@transaction
def disable_rule(id: UUID, reason: str, now: datetime) -> Script[None]:
    """A broken rule disables itself, says why, and is kept."""
    yield sql("disable_rule", id, reason, False, now)
