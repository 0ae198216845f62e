"""A rule as a person writes it, checked field by field, whether it comes from a file, the command line or a page.

name: receipts
if: {sender_domain: shop.example}
then: apply_label
parameters: {label: Receipts}
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, cast
from uuid import UUID

import orjson

from postroom.core.actions.action import ACTION_TYPES, DecidedType
from postroom.core.actions.snooze import wake_time
from postroom.core.actions.steps import as_items, check_action, combined, read_steps, steps_of
from postroom.core.errors import BadInput
from postroom.core.rules.conditions import read_conditions
from postroom.core.rules.leaf import BrokenRule, suggestion
from postroom.core.rules.rule import SCOPES, Rule, labels_looked_at, read_scope
from postroom.core.strict import one_line, shown_name, yes_or_no

RULE_ACTIONS = ("none", *ACTION_TYPES)
REVIEW = "review and enable"
LONGEST_NAME = 200
LONGEST_DESCRIPTION = 2_000
LONGEST_REASON = 500
NEEDED = "a name, `if`, and `then` or `actions`"
PRIORITIES = range(-1_000_000, 1_000_001)
MODES = ("active", "shadow")
FIELDS = (
    "name",
    "description",
    "scope",
    "scope_ref",
    "priority",
    "if",
    "then",
    "parameters",
    "actions",
    "continue",
    "mode",
    "needs_approval",
    "enabled",
    "disabled_reason",
)


@dataclass(frozen=True, slots=True)
class RuleDraft:
    """A valid rule, not stored yet. For the scope `account`, `scope_ref` is still as given: an id or an address."""

    name: str
    conditions: Mapping[str, Any]
    action_type: DecidedType
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    description: str = ""
    scope: str = "global"
    scope_ref: str | None = None
    priority: int = 100
    shadow: bool = False
    needs_approval: bool = False
    enabled: bool = True
    disabled_reason: str | None = None
    continues: bool = False

    @property
    def is_reviewed(self) -> bool:
        """Whether an import leaves it disabled, since its action cannot be undone."""
        return any(step.is_final for step in steps_of(self.action_type, self.parameters))

    @property
    def content_hash(self) -> str:
        """The fingerprint of its conditions and actions; a person's confirmation is bound to it."""
        content = [
            self.scope,
            self.scope_ref,
            self.conditions,
            self.action_type,
            self.parameters,
            self.needs_approval,
            self.continues,
        ]
        return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()

    def for_review(self, reason: str = REVIEW) -> "RuleDraft":
        """The same rule, disabled until a person has looked at it."""
        return replace(self, enabled=False, disabled_reason=reason)

    def as_rule(self, id: UUID) -> Rule:
        """The rule as the engine uses it."""
        return Rule(
            id,
            self.name,
            self.scope,
            self.scope_ref,
            self.priority,
            self.conditions,
            self.action_type,
            self.parameters,
            self.shadow,
            self.needs_approval,
            self.continues,
        )


def check_rule(conditions: object, action_type: object, parameters: object) -> None:
    """Check a rule. Raises BadInput, which names the field, the problem and the remedy."""
    try:
        read_conditions(conditions)
    except BrokenRule as broken:
        raise BadInput(broken.field, broken.problem, broken.remedy) from None
    if action_type not in (*RULE_ACTIONS, "several"):
        raise BadInput(
            "then", f"{shown_name(str(action_type))!r} is not an action", suggestion(str(action_type), RULE_ACTIONS)
        )
    if not isinstance(parameters, Mapping):
        raise BadInput("parameters", "is not an object", "write {label: Receipts}, or leave it out")
    given = cast("Mapping[str, Any]", parameters)
    if action_type != "none":
        check_action(str(action_type), given)
    elif given:
        raise BadInput("parameters", "are given, but the action is none", "leave them out")


def check_wake_times(action_type: str, parameters: Mapping[str, Any], now: datetime) -> None:
    """Refuse to snooze until a fixed time that is past, or more than a year away. Raises BadInput."""
    for step in steps_of(action_type, parameters):
        if step.action_type == "snooze" and step.parameters.get("until") is not None:
            wake_time(step.parameters, now)


def read_draft(data: object) -> RuleDraft:
    """Read a rule from a document. Raises BadInput."""
    if not isinstance(data, Mapping):
        raise BadInput("rule", "is not an object", f"give each rule {NEEDED}")
    given = cast("Mapping[object, Any]", data)
    for key in given:
        if key not in FIELDS:
            raise BadInput(shown_name(str(key)), "is not a field of a rule", suggestion(str(key), FIELDS))
    for needed in ("name", "if"):
        if given.get(needed) is None:
            raise BadInput(needed, "is missing", f"a rule needs {NEEDED}")
    action_type, parameters = _read_action(given)
    check_rule(given["if"], action_type, parameters)
    draft = RuleDraft(
        name=one_line("name", given["name"], LONGEST_NAME),
        conditions=given["if"],
        action_type=action_type,
        parameters=parameters,
        description=_text("description", given.get("description"), LONGEST_DESCRIPTION),
        scope=_one_of("scope", given.get("scope", "global"), SCOPES),
        scope_ref=None if given.get("scope_ref") is None else one_line("scope_ref", given["scope_ref"], LONGEST_NAME),
        priority=_priority(given.get("priority", 100)),
        shadow=_one_of("mode", given.get("mode", "active"), MODES) == "shadow",
        needs_approval=yes_or_no("needs_approval", given.get("needs_approval", False)),
        enabled=yes_or_no("enabled", given.get("enabled", True)),
        disabled_reason=_text("disabled_reason", given.get("disabled_reason"), LONGEST_REASON) or None,
        continues=yes_or_no("continue", given.get("continue", False)),
    )
    return _consistent(draft)


def _read_action(given: Mapping[object, Any]) -> tuple[Any, Any]:
    """The type and the parameters of the action, from `then` or from `actions`."""
    then, actions, parameters = given.get("then"), given.get("actions"), given.get("parameters")
    if then is None and actions is None:
        raise BadInput("then", "is missing", f"a rule needs {NEEDED}")
    if actions is None:
        if then == "several":
            raise BadInput("then", "is not an action", "give several as actions: [apply_label Receipts, archive]")
        return then, dict[str, Any]() if parameters is None else parameters
    for beside in ("then", "parameters"):
        if given.get(beside) is not None:
            raise BadInput(beside, "is given beside `actions`", "leave it out; each action has its own parameters")
    return combined(read_steps(actions))


def unknown_labels(draft: RuleDraft, known: frozenset[str]) -> frozenset[str]:
    """The labels that the rule needs and that do not exist. `known` are ids and casefolded names.

    A label to apply is not among them: it is created when it is first needed.
    """
    steps = steps_of(draft.action_type, draft.parameters)
    removed = {step.parameters.get("label") for step in steps if step.action_type == "remove_label"}
    needed = labels_looked_at(draft.conditions) | {label for label in removed if isinstance(label, str)}
    return frozenset(each for each in needed if each not in known and each.casefold() not in known)


def _consistent(draft: RuleDraft) -> RuleDraft:
    if draft.disabled_reason is not None and draft.enabled:
        raise BadInput("disabled_reason", "is given for a rule that is enabled", "leave it out, or set enabled: false")
    if draft.continues and draft.action_type == "none":
        raise BadInput("continue", "is given for a rule that does nothing", "leave one of them out")
    if draft.scope == "account" and draft.scope_ref:
        return draft  # it may be an address; the caller, who knows the accounts, checks it
    try:
        read_scope(draft.scope, draft.scope_ref)
    except BrokenRule as broken:
        raise BadInput(broken.field, broken.problem, broken.remedy) from None
    return draft


def as_document(draft: RuleDraft) -> dict[str, Any]:
    """The rule as `read_draft` reads it, without default values."""
    optional: dict[str, Any] = {
        "description": (draft.description, ""),
        "scope": (draft.scope, "global"),
        "scope_ref": (draft.scope_ref, None),
        "priority": (draft.priority, 100),
    }
    document: dict[str, Any] = {"name": draft.name}
    document |= {name: value for name, (value, default) in optional.items() if value != default}
    document["if"] = draft.conditions
    if draft.action_type == "several":
        document["actions"] = as_items(steps_of(draft.action_type, draft.parameters))
    else:
        document["then"] = draft.action_type
        document |= {"parameters": draft.parameters} if draft.parameters else {}
    document |= {"continue": True} if draft.continues else {}
    document |= {"mode": "shadow"} if draft.shadow else {}
    document |= {"needs_approval": True} if draft.needs_approval else {}
    document |= {} if draft.enabled else {"enabled": False}
    return document | ({"disabled_reason": draft.disabled_reason} if draft.disabled_reason else {})


def _text(name: str, given: object, longest: int) -> str:
    if given is None:
        return ""
    if not isinstance(given, str) or len(given) > longest or "\0" in given or not _encodable(given):
        raise BadInput(name, "is not a text, or is too long", f"give up to {longest:,} characters")
    return given.strip()


def _encodable(text: str) -> bool:
    return text.encode("utf-8", "ignore").decode("utf-8") == text


def _priority(given: object) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or given not in PRIORITIES:
        raise BadInput("priority", "is not a whole number up to 1,000,000", "give one; the lowest goes first")
    return given


def _one_of(name: str, given: object, allowed: tuple[str, ...]) -> str:
    if given not in allowed:
        raise BadInput(name, f"{shown_name(str(given))!r} is unknown", suggestion(str(given), allowed))
    return str(given)
