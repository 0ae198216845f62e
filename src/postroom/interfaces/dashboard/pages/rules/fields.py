"""A rule as the fields of a form: rows of conditions that all or any must hold, and rows of actions.

Most rules fit into it. One with conditions inside others is edited as text instead.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast

from starlette.datastructures import FormData

from postroom.core.actions.action import SPECS
from postroom.core.actions.steps import Step, steps_of
from postroom.core.errors import BadInput
from postroom.core.mail.addresses import canonical
from postroom.core.mail.senders import SHARED_DOMAINS
from postroom.core.rules.conditions import SPECS as CONDITION_SPECS
from postroom.core.rules.draft import RuleDraft, read_draft
from postroom.core.rules.properties import list_name
from postroom.words.actions import NAME_A_LABEL

FEWEST_ROWS = 3
MOST_ROWS = 20
MOST_STEPS = 10
LONGEST_VALUE = 120
Joining = Literal["and", "or"]
Standing = Literal["on", "shadow", "off"]


class Choice(NamedTuple):
    """A kind of condition or action, as the form offers it. Without an example it takes no value."""

    kind: str
    text: str
    example: str = ""


_FORMS = {kind: spec.form for kind, spec in CONDITION_SPECS.items() if spec.form is not None}
CONDITIONS = tuple(
    Choice(kind, form.text, form.example) for kind, form in sorted(_FORMS.items(), key=lambda each: each[1].place)
)
ACTIONS = (
    *(Choice(name, spec.button, spec.example) for name, spec in SPECS.items()),
    Choice("none", "Leave it, and try no later rule"),
)
# A rule for mail like one message: these actions, each with a label or without anything.
FILE = "file"
QUICK_ACTIONS = (
    *(each for each in ACTIONS if each.kind == "archive"),
    Choice(FILE, "Apply the label and archive", "Receipts"),
    *(each for each in ACTIONS if each.kind in ("apply_label", "mark_read", "star", "trash", "none")),
)
_BUTTONS = {each.kind: each.text for each in ACTIONS}
_ARGUMENTS = {name: spec.argument for name, spec in SPECS.items() if spec.argument is not None}


class ConditionRow(NamedTuple):
    """One row: a kind of condition, whether it must not hold, and its value."""

    kind: str = ""
    negated: bool = False
    value: str = ""


class ActionRow(NamedTuple):
    """One row: an action, and its value."""

    action: str = ""
    value: str = ""


@dataclass(frozen=True, slots=True)
class RuleFields:
    """The fields of the form, as they were filled in."""

    name: str = ""
    description: str = ""
    joining: Joining = "and"
    conditions: tuple[ConditionRow, ...] = ()
    steps: tuple[ActionRow, ...] = ()
    scope: str = "global"
    scope_ref: str = ""
    priority: str = "100"
    standing: Standing = "on"
    disabled_reason: str = ""
    needs_approval: bool = False
    continues: bool = False

    @property
    def condition_rows(self) -> tuple[ConditionRow, ...]:
        """The rows to show: those filled in, and at least one that is empty."""
        return (*self.conditions, *[ConditionRow()] * _spare(len(self.conditions), MOST_ROWS))

    @property
    def action_rows(self) -> tuple[ActionRow, ...]:
        return (*self.steps, *[ActionRow()] * (1 if len(self.steps) < MOST_STEPS else 0))


def _spare(used: int, most: int) -> int:
    return min(most - used, max(1, FEWEST_ROWS - used))


def fields_of(given: FormData) -> RuleFields:
    """Read the submitted form. Nothing is checked yet."""
    kinds, how, values = (_texts(given, name) for name in ("kind", "how", "value"))
    rows = [ConditionRow(kind, is_ == "not", value) for kind, is_, value in zip(kinds, how, values, strict=False)]
    actions = zip(_texts(given, "action"), _texts(given, "argument"), strict=False)
    standing, about = _text(given, "standing"), _about(_text(given, "about"))
    steps = [step for each in actions for step in _steps(ActionRow(*each))]
    return RuleFields(
        name=_text(given, "name") or (_name_of(about, steps) if about else ""),
        description=_text(given, "description"),
        joining="or" if _text(given, "joining") == "or" else "and",
        conditions=tuple(row for row in (*([about] if about else ()), *rows[:MOST_ROWS]) if row.kind),
        steps=tuple(row for row in steps if row.action)[:MOST_STEPS],
        scope=_text(given, "scope") or "global",
        scope_ref=_text(given, "scope_ref"),
        priority=_text(given, "priority") or "100",
        standing="shadow" if standing == "shadow" else "off" if standing == "off" else "on",
        disabled_reason=_text(given, "disabled_reason"),
        needs_approval=bool(_text(given, "needs_approval")),
        continues=bool(_text(given, "continues")),
    )


def document_of(fields: RuleFields) -> dict[str, Any]:
    """Return the rule as `read_draft` reads it. Raises BadInput for a field that is no part of a rule at all."""
    if not fields.conditions:
        raise BadInput("When", "there is no condition", "choose at least one, such as From")
    if not fields.steps:
        raise BadInput("Then", "there is no action", "choose at least one, such as Archive")
    if any(row.action in NAME_A_LABEL and not row.value for row in fields.steps):
        raise BadInput("Then", "needs the name of a label", "write it beside the action, such as Receipts")
    conditions = [_condition(row) for row in fields.conditions]
    document: dict[str, Any] = {
        "name": fields.name,
        "description": fields.description,
        "if": conditions[0] if len(conditions) == 1 else {fields.joining: conditions},
        "scope": fields.scope,
        "scope_ref": fields.scope_ref or None if fields.scope != "global" else None,
        "priority": _number(fields.priority),
        "mode": "shadow" if fields.standing == "shadow" else "active",
        "enabled": fields.standing != "off",
        "disabled_reason": fields.disabled_reason or None if fields.standing == "off" else None,
        "needs_approval": fields.needs_approval,
        "continue": fields.continues,
    }
    if [row.action for row in fields.steps] == ["none"]:
        return {**document, "then": "none"}
    if any(row.action == "none" for row in fields.steps):
        raise BadInput("Then", "leaves the mail as it is, and does something else too", "choose one of them")
    return {**document, "actions": [_step(row) for row in fields.steps]}


def as_fields(draft: RuleDraft) -> RuleFields | None:
    """Return the rule as fields; None if it does not fit into the form."""
    joining, conditions = _read_joining(draft.conditions)
    rows = [_condition_row(each) for each in conditions]
    steps = [_action_row(each) for each in steps_of(draft.action_type, draft.parameters)] or [ActionRow("none")]
    found_rows, found_steps = [each for each in rows if each], [each for each in steps if each]
    if len(found_rows) != len(rows) or len(found_steps) != len(steps) or len(rows) > MOST_ROWS:
        return None
    fields = RuleFields(
        name=draft.name,
        description=draft.description,
        joining=joining,
        conditions=tuple(found_rows),
        steps=tuple(found_steps),
        scope=draft.scope,
        scope_ref=draft.scope_ref or "",
        priority=str(draft.priority),
        standing="off" if not draft.enabled else "shadow" if draft.shadow else "on",
        disabled_reason=draft.disabled_reason or "",
        needs_approval=draft.needs_approval,
        continues=draft.continues,
    )
    is_off_in_shadow = draft.shadow and not draft.enabled
    return None if "\n" in draft.description or is_off_in_shadow else fields


def rows_about(sender: str, list_id: str) -> list[ConditionRow]:
    """Return the conditions on where a message comes from, the narrowest first: its sender, its list, its domain."""
    address = canonical(sender) or ""
    domain = address.rpartition("@")[2]
    rows = [
        ConditionRow("sender_email", False, address),
        ConditionRow("list", False, list_name(list_id)),
        ConditionRow("sender_domain", False, "" if domain in SHARED_DOMAINS else domain),
    ]
    return [row for row in rows if _is_valid(row)]


def _is_valid(row: ConditionRow) -> bool:
    if not row.value or len(row.value) > LONGEST_VALUE or row.value != " ".join(row.value.split()):
        return False
    try:
        read_draft({"name": "one condition", "if": {row.kind: row.value}, "then": "none"})
    except BadInput:
        return False
    return True


def _about(text: str) -> ConditionRow | None:
    """Read a condition from a single field: its kind and its value."""
    kind, _, value = text.partition(" ")
    return ConditionRow(kind, False, value) if kind else None


def _steps(row: ActionRow) -> list[ActionRow]:
    return [ActionRow("apply_label", row.value), ActionRow("archive")] if row.action == FILE else [row]


def _name_of(about: ConditionRow, steps: Sequence[ActionRow]) -> str:
    first, *more = [f"{_BUTTONS.get(each.action, each.action)} {each.value}".strip() for each in steps] or [""]
    said = " and ".join([first, *(f"{each[:1].lower()}{each[1:]}" for each in more)])
    return f"{said}: {about.value}"[:LONGEST_VALUE]


def prefilled(sender: str | None, subject: str | None, list_id: str | None, label: str | None) -> RuleFields:
    """Return the fields of a new rule about mail like this."""
    given = [("from", sender), ("subject_contains", subject), ("list", list_id)]
    conditions = tuple(ConditionRow(kind, False, value) for kind, value in given if value)
    steps = (ActionRow("apply_label", label),) if label else ()
    about = sender or list_id or subject or ""
    return RuleFields(name=f"Mail of {about}"[:120] if about else "", conditions=conditions, steps=steps)


def _condition(row: ConditionRow) -> dict[str, Any]:
    form = _FORMS.get(row.kind)
    if form is None:
        return {row.kind: row.value}
    if not form.example:
        return {row.kind: not row.negated}
    condition = {row.kind: form.read(row.value)}
    return {"not": condition} if row.negated else condition


def _condition_row(condition: object) -> ConditionRow | None:
    """Return the row for one condition; None if the form has no row like this."""
    if not isinstance(condition, Mapping) or len(cast("Mapping[Any, Any]", condition)) != 1:
        return None
    ((kind, value),) = cast("Mapping[str, object]", condition).items()
    if kind == "not":
        row = _condition_row(value)
        return None if row is None or row.negated or not _FORMS[row.kind].example else row._replace(negated=True)
    if kind not in _FORMS:
        return None
    if not _FORMS[kind].example:
        return ConditionRow(kind, value is False)
    text = _FORMS[kind].write(value)
    return None if text is None or text != text.strip() else ConditionRow(kind, False, text)


def _read_joining(conditions: Mapping[str, Any]) -> tuple[Joining, Sequence[object]]:
    joinings: tuple[Joining, ...] = ("and", "or")
    for joining in joinings:
        if list(conditions) == [joining]:
            return joining, cast("list[object]", conditions[joining])
    return "and", [conditions]


def _step(row: ActionRow) -> object:
    if row.action == "snooze":
        amount, _, units = row.value.partition(" ")
        return {"snooze": {"amount": _number(amount, "Snooze"), "units": units.strip()}}
    return {row.action: row.value} if row.action in _ARGUMENTS else row.action


def _action_row(step: Step) -> ActionRow | None:
    """Return the row for one action; None if it has parameters that the form has no field for."""
    given = dict(step.parameters)
    match step.action_type, given:
        case "snooze", {"amount": int(amount), "units": str(units)} if len(given) == 2:
            return ActionRow("snooze", f"{amount} {units}")
        case action, {} if not given:
            return ActionRow(action)
        case action, _ if set(given) == {_ARGUMENTS.get(action)}:
            [value] = given.values()
            return ActionRow(action, value) if isinstance(value, str) and "\n" not in value else None
        case _:
            return None


def _number(text: str, name: str = "Priority") -> int:
    try:
        return int(text)
    except ValueError:
        raise BadInput(name, f"{text[:20]!r} is no whole number", "write digits") from None


def _text(given: FormData, name: str) -> str:
    value = given.get(name, "")
    return " ".join(value.split()) if isinstance(value, str) else ""


def _texts(given: FormData, name: str) -> list[str]:
    return [value.strip() if isinstance(value, str) else "" for value in given.getlist(name)]
