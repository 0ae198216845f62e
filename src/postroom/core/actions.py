"""What can be done with a message, what each changes, and how it is reversed (seed 004, sections 5.7 and 5.10).

Label actions are a difference: labels to add and labels to remove. What an action really changed is that difference
against the labels before it, the pre-image; the undo hint is its inverse, so that an undo restores exactly what the
action changed and nothing that the user changed meanwhile.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson

from postroom.core.errors import Fatal

ACTION_TYPES = (
    "archive",
    "apply_label",
    "remove_label",
    "mark_read",
    "mark_unread",
    "star",
    "unstar",
    "trash",
    "restore",
    "delete",
    "snooze",
    "forward",
    "auto_reply",
)
INVERSES: Mapping[str, str] = {"archive": "apply_label", "apply_label": "remove_label"}


@dataclass(frozen=True, slots=True)
class LabelChange:
    """Labels, by id, that an action adds and removes."""

    add: frozenset[str]
    remove: frozenset[str]

    def effective(self, before: frozenset[str]) -> "LabelChange":
        """What of it changes a message that has these labels."""
        return LabelChange(self.add - before, self.remove & before)

    @property
    def inverse(self) -> "LabelChange":
        return LabelChange(self.remove, self.add)


def wanted_label(action_type: str, parameters: Mapping[str, Any]) -> str | None:
    """The label an action names. Raises Fatal when it needs one and has none: no retry would mend that."""
    if action_type not in ("apply_label", "remove_label"):
        return None
    label = parameters.get("label")
    if not isinstance(label, str) or not label.strip():
        raise Fatal(f"{action_type} needs a label in its parameters; edit the rule that asked for it")
    return label


def label_change(action_type: str, label_id: str | None) -> LabelChange:
    """What the action asks for, whatever the message has."""
    match action_type:
        case "archive":
            return LabelChange(frozenset(), frozenset({"INBOX"}))
        case "apply_label" if label_id is not None:
            return LabelChange(frozenset({label_id}), frozenset())
        case _:
            raise Fatal(f"the action {action_type} is not available yet; choose archive or apply_label")


def undo_hint(action_type: str, before: frozenset[str], changed: LabelChange) -> dict[str, Any]:
    """How the action is reversed, as it is kept with the action."""
    inverse = changed.inverse
    return {
        "action": action_type,
        "pre_labels": sorted(before),
        "inverse_action": INVERSES[action_type] if changed.add or changed.remove else "none",
        "inverse_parameters": {"add_labels": sorted(inverse.add), "remove_labels": sorted(inverse.remove)},
        "no_op": not (changed.add or changed.remove),
        "irreversible": False,
    }


def action_hash(message_id: UUID, action_type: str, parameters: Mapping[str, Any]) -> str:
    """A fingerprint of exactly this action on this message: an approval is bound to it."""
    content = [str(message_id), action_type, parameters]
    return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()
