"""Actions in plain words: what somebody asks for ("archive it"), what was done ("archived"), and what forms offer.

The words of each action stand in its declaration, `core/actions/action.py`.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from postroom.core.actions.action import SPECS, ActionSpec
from postroom.core.actions.parameters import recipients_of
from postroom.core.actions.steps import Step, steps_of
from postroom.core.errors import Fatal
from postroom.core.short_ids import SHOWN

NAME_A_LABEL = frozenset[str](name for name, spec in SPECS.items() if spec.names_label)
# Actions that a page offers for one message, as `postroom do` takes them; archive and delete have their own buttons.
OFFERED: Mapping[str, str] = {
    **{
        name: spec.button
        for name, spec in SPECS.items()
        if spec.operation == "relabel" and name != "archive" and (spec.names_label or not spec.parameters)
    },
    "snooze 3h": "Snooze for 3 hours",
    "snooze 1d": "Snooze for a day",
    "snooze 1w": "Snooze for a week",
}


def asked(action_type: str, parameters: Mapping[str, Any]) -> str:
    """The action as something to do, such as `label it “Receipts” and archive it`."""
    return _join_with_and(_phrases(action_type, parameters, lambda spec: spec.asked)) or "leave it as it is"


def done(action_type: str, parameters: Mapping[str, Any]) -> str:
    """The action as something that was done, such as `labelled “Receipts” and archived`."""
    return _join_with_and(_phrases(action_type, parameters, lambda spec: spec.done)) or "left as it was"


def agent_named(name: str | None, asked_by: str | None) -> str:
    """The agent that asked for an action, by the name of its token, or by the last digits of the token's id."""
    return f"agent {name or (asked_by or '')[-SHOWN:]}".rstrip()


def in_brief(action_type: str, parameters: Mapping[str, Any]) -> str:
    """The action as its button says it, without recipients, such as `apply the label “Receipts”, then archive`."""
    said = [_button(step) for step in steps_of(action_type, parameters)]
    return ", then ".join(f"{each[:1].lower()}{each[1:]}" for each in said) or "leave as it is"


def _button(step: Step) -> str:
    is_sent = step.spec.operation == "send"
    return step.spec.button if is_sent else _with_detail(step.spec.button, step.spec, step.parameters)


def rule_does(action_type: str, parameters: Mapping[str, Any]) -> str:
    """The effect of a rule, whose stored actions may be broken."""
    try:
        return "leave it as it is; no later rule is tried" if action_type == "none" else asked(action_type, parameters)
    except Fatal:
        return "something that is not valid"


def kind_done(action_type: str) -> str:
    """The result for messages that are counted together, such as `Archived`."""
    match action_type:
        case "none":
            return "Kept in inbox"
        case "several":
            return "Several actions"
        case _:
            return next((spec.done.capitalize() for name, spec in SPECS.items() if name == action_type), action_type)


def _phrases(action_type: str, parameters: Mapping[str, Any], words: Callable[[ActionSpec], str]) -> Iterable[str]:
    return [_with_detail(words(step.spec), step.spec, step.parameters) for step in steps_of(action_type, parameters)]


def _with_detail(words: str, spec: ActionSpec, given: Mapping[str, Any]) -> str:
    named = {"label": f"“{given['label']}”" if "label" in given else "", "to": ", ".join(recipients_of(given))}
    detail = spec.detail.format(**named, when=_when(given)) if given else ""
    return f"{words} {detail}".rstrip()


def _when(parameters: Mapping[str, Any]) -> str:
    until, amount = parameters.get("until"), parameters.get("amount")
    if until:
        return f"until {_to_the_minute(str(until))}"
    return "" if amount is None else f"for {amount} {parameters.get('units')}"


def _to_the_minute(text: str) -> str:
    try:
        return f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M %Z}".rstrip()
    except ValueError:
        return text


def _join_with_and(parts: Iterable[str]) -> str:
    *first, last = (*parts,) or ("",)
    return f"{', '.join(first)} and {last}" if first else last
