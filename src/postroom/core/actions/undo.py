"""The undo of an action: the hint stored with the action, and how the undo uses it.

An undo restores exactly what the action changed, and only that. Later changes by the user stay: a label that they
removed is not put back by undoing something else, and a message that they moved to another place (trash, spam) stays
there.

Several actions get a hint for the plan before they run. It stays if they end while the mailbox cannot be read: then the
result is unknown. The labels are changed in one call, so a partial change is the user's own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from postroom.core.actions.action import INVERSES, IRREVERSIBLE
from postroom.core.actions.label_changes import LabelChange, places_in

# An action that ended so may have done a part: then it has a hint, and that part can be undone.
ENDED_HALFWAY = frozenset({"failed", "canceled"})


@dataclass(frozen=True, slots=True)
class Snoozed:
    """The traces of a snooze apart from changed labels."""

    until: datetime
    label: str
    label_id: str
    job_id: UUID
    history_id: int | None = None
    """The message's last change in the mailbox's history once it was hidden; any later change is not ours."""


def undo_hint(
    action_type: str,
    before: frozenset[str],
    changed: LabelChange,
    snoozed: Snoozed | None = None,
    place: str | None = None,
) -> dict[str, Any]:
    """The undo hint to store with an action. `changed` is its actual effect, and `place` where it left the message, if
    the mailbox can have other copies.
    """
    inverse = changed.inverse
    hint: dict[str, Any] = {
        "action": action_type,
        "pre_labels": sorted(before),
        "inverse_action": INVERSES[action_type] if changed or snoozed else "none",
        "inverse_parameters": {"add_labels": sorted(inverse.add), "remove_labels": sorted(inverse.remove)},
        "no_op": not changed and snoozed is None,
        "irreversible": False,
    }
    if place is not None:
        hint["place"] = place
    if snoozed is not None:
        hint["inverse_parameters"]["cancel_unsnooze_job_id"] = str(snoozed.job_id)
        hint |= {
            "snooze_until": snoozed.until.isoformat(),
            "snooze_label": snoozed.label,
            "snooze_label_id": snoozed.label_id,
            "unsnooze_job_id": str(snoozed.job_id),
        }
        if snoozed.history_id is not None:
            hint["snooze_history_id"] = snoozed.history_id
    return hint


def labels_left(hint: Mapping[str, Any]) -> frozenset[str]:
    """The labels of the message right after the action."""
    parameters = hint["inverse_parameters"]
    return frozenset[str](hint["pre_labels"]) - set(parameters["add_labels"]) | set(parameters["remove_labels"])


def with_renamed(hint: Mapping[str, Any], label: str) -> dict[str, Any]:
    """The hint, now that the folder into which the action has put the message is called otherwise."""
    parameters = hint["inverse_parameters"]
    remove = set[str](parameters["remove_labels"])
    renamed = sorted(remove - places_in(remove) | {label}) if places_in(remove) else sorted(remove)
    return {**hint, "inverse_parameters": {**parameters, "remove_labels": renamed}}


def planned_hint(hint: Mapping[str, Any]) -> dict[str, Any]:
    """The same hint for something that is about to be done."""
    return {**hint, "planned": True}


def hint_for_part(hint: Mapping[str, Any], labels: frozenset[str]) -> dict[str, Any]:
    """The hint for the part of an action that is in effect on a message with these labels. A snooze keeps its own."""
    parameters = hint["inverse_parameters"]
    add, remove = sorted(set(parameters["add_labels"]) - labels), sorted(labels & set(parameters["remove_labels"]))
    known = {name: value for name, value in hint.items() if name != "planned"}
    part = {**known, "inverse_parameters": {**parameters, "add_labels": add, "remove_labels": remove}}
    return part if add or remove or "unsnooze_job_id" in hint else {**part, "inverse_action": "none", "no_op": True}


def irreversible_hint(action_type: str, **details: Any) -> dict[str, Any]:
    """The hint for an action that cannot be undone: a sent mail, a deleted message, an undo."""
    return {"action": action_type, "inverse_action": "none", "irreversible": True, **details}


def sent_hint(action_type: str, before: Mapping[str, Any] | None, sent_message_id: str | None) -> dict[str, Any]:
    """The hint for an action that has sent mail. Its earlier steps can still be undone."""
    if before is None:
        return irreversible_hint(action_type, sent_message_id=sent_message_id)
    return {**before, "sent_message_id": sent_message_id, "stays_sent": True}


def why_not_undoable(action_type: str, state: str, hint: Mapping[str, Any] | None) -> str | None:
    """Why an action cannot be undone, in words for the user; None when it can."""
    if state != "completed" and not (state in ENDED_HALFWAY and hint is not None):
        return f"it is {state}: only completed actions can be undone"
    if action_type in IRREVERSIBLE or hint is None or hint.get("irreversible"):
        return f"{action_type} cannot be undone"
    if hint.get("inverse_action") == "none":
        sent = hint.get("stays_sent")
        return "mail that was sent stays sent" if sent else "it changed nothing, so there is nothing to undo"
    return None


def inverse_change(hint: Mapping[str, Any], labels: frozenset[str]) -> LabelChange:
    """The change that the undo makes to a message with these labels now."""
    parameters = hint["inverse_parameters"]
    add, remove = frozenset[str](parameters["add_labels"]), frozenset[str](parameters["remove_labels"])
    elsewhere = places_in(labels) - remove
    if places_in(add) and elsewhere:
        add -= places_in(add)
    return LabelChange(add - labels, remove & labels)


def is_certain(hint: Mapping[str, Any], labels: frozenset[str]) -> bool:
    """Whether the action made the change that the undo would reverse on a message with these labels.

    For a plan, that holds if all of it is in effect and it has several changes: a single one may be the user's own.
    The trash has a call of its own, so there it does not hold.
    """
    if not hint.get("planned") or not inverse_change(hint, labels):
        return True
    parameters = hint["inverse_parameters"]
    add, remove = frozenset[str](parameters["add_labels"]), frozenset[str](parameters["remove_labels"])
    return len(add | remove) > 1 and not add & labels and remove <= labels and "TRASH" not in add | remove
