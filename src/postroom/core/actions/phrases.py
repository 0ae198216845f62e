"""Actions in plain words: what somebody asks for ("archive it"), and what was done ("archived")."""

from collections.abc import Iterable, Mapping
from typing import Any

from postroom.core.actions.action import recipients_of
from postroom.core.actions.steps import steps_of

_ASKED: Mapping[str, str] = {
    "archive": "archive it",
    "mark_read": "mark it as read",
    "mark_unread": "mark it as unread",
    "star": "star it",
    "unstar": "take its star off",
    "trash": "move it to the trash",
    "restore": "take it out of the trash",
    "delete": "delete it for good",
    "auto_reply": "answer it",
}
_DONE: Mapping[str, str] = {
    "archive": "archived",
    "mark_read": "marked as read",
    "mark_unread": "marked as unread",
    "star": "starred",
    "unstar": "freed of its star",
    "trash": "moved to the trash",
    "restore": "taken out of the trash",
    "delete": "deleted for good",
    "auto_reply": "answered",
}


def asked(action_type: str, parameters: Mapping[str, Any]) -> str:
    """The action as something to do, such as "label it 'Receipts' and archive it"."""
    return (
        _listed(_asked(each.action_type, each.parameters) for each in steps_of(action_type, parameters))
        or "leave it as it is"
    )


def done(action_type: str, parameters: Mapping[str, Any]) -> str:
    """The action as something that was done, such as "labelled 'Receipts' and archived"."""
    return (
        _listed(_done(each.action_type, each.parameters) for each in steps_of(action_type, parameters))
        or "left as it was"
    )


def _asked(action_type: str, parameters: Mapping[str, Any]) -> str:
    match action_type:
        case "apply_label":
            return f"label it {str(parameters.get('label'))!r}"
        case "remove_label":
            return f"take the label {str(parameters.get('label'))!r} off"
        case "forward":
            return f"forward it to {', '.join(recipients_of(parameters))}"
        case "snooze":
            return f"snooze it {_span(parameters)}".rstrip()
        case _:
            return _ASKED.get(action_type, action_type)


def _done(action_type: str, parameters: Mapping[str, Any]) -> str:
    match action_type:
        case "apply_label":
            return f"labelled {str(parameters.get('label'))!r}"
        case "remove_label":
            return f"freed of the label {str(parameters.get('label'))!r}"
        case "forward":
            return f"forwarded to {', '.join(recipients_of(parameters))}"
        case "snooze":
            return f"snoozed {_span(parameters)}".rstrip()
        case _:
            return _DONE.get(action_type, action_type)


def _span(parameters: Mapping[str, Any]) -> str:
    until, amount = parameters.get("until"), parameters.get("amount")
    if until:
        return f"until {until}"
    return "" if amount is None else f"for {amount} {parameters.get('units')}"


def _listed(parts: Iterable[str]) -> str:
    *first, last = (*parts,) or ("",)
    return f"{', '.join(first)} and {last}" if first else last
