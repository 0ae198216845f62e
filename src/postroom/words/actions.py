"""Actions in plain words: what somebody asks for ("archive it"), and what was done ("archived")."""

from collections.abc import Iterable, Mapping
from typing import Any

from postroom.core.actions.parameters import recipients_of
from postroom.core.actions.steps import Step, steps_of


def asked(action_type: str, parameters: Mapping[str, Any]) -> str:
    """The action as something to do, such as "label it 'Receipts' and archive it"."""
    steps = steps_of(action_type, parameters)
    return _listed(_with_detail(step.spec.asked, step) for step in steps) or "leave it as it is"


def done(action_type: str, parameters: Mapping[str, Any]) -> str:
    """The action as something that was done, such as "labelled 'Receipts' and archived"."""
    steps = steps_of(action_type, parameters)
    return _listed(_with_detail(step.spec.done, step) for step in steps) or "left as it was"


def _with_detail(words: str, step: Step) -> str:
    given = step.parameters
    label, to = repr(str(given.get("label"))), ", ".join(recipients_of(given))
    return f"{words} {step.spec.detail.format(label=label, to=to, when=_when(given))}".rstrip()


def _when(parameters: Mapping[str, Any]) -> str:
    until, amount = parameters.get("until"), parameters.get("amount")
    if until:
        return f"until {until}"
    return "" if amount is None else f"for {amount} {parameters.get('units')}"


def _listed(parts: Iterable[str]) -> str:
    *first, last = (*parts,) or ("",)
    return f"{', '.join(first)} and {last}" if first else last
