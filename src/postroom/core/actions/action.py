"""The actions on a message, each declared once: what it changes, what it takes, what holds for it, and its words.

Everything else about actions is read from `SPECS`: undo, safety, the choices of a model, forms, commands, and words. A
new action is a name in `ActionType` and an entry in `SPECS`.

Most actions add some labels and remove others. What an action really changed follows from the labels before it, the
pre-image; `core/actions/undo.py` computes the inverse.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args
from uuid import UUID

import orjson

from postroom.core.actions.label_changes import PLACES, LabelChange
from postroom.core.actions.parameters import (
    accept,
    check_addresses,
    check_attachments,
    check_copies,
    check_label,
    check_needed_text,
    check_subject,
    check_text,
)
from postroom.core.actions.snooze import UNITS, check_snooze
from postroom.core.errors import BadInput, Fatal

ActionType = Literal[
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
]
RecordedType = Literal[ActionType, "several"]
"""An action as it is recorded: one of these, or several of them as one (`core/actions/steps.py`)."""
DecidedType = Literal[RecordedType, "none"]
"""A decision about a message: an action, or to leave it as it is."""
Actor = Literal["rule", "model", "user", "agent", "undo"]
"""Who requested an action."""
ACTION_TYPES: tuple[ActionType, ...] = get_args(ActionType)
Operation = Literal["relabel", "snooze", "delete", "send"]
"""How an action is carried out."""
Hiding = Literal["never", "always", "if_folder", "if_long"]
"""When an action takes a message out of sight: never, always, if its label is a folder, if it lasts long."""
Place = Literal["archive", "trash", "spam", "inbox"]
"""Where a user puts a message."""
THE_LABEL = "{label}"
"""In a change: the label that the action names, or under which a snooze hides the message."""
_THROWN_AWAY: frozenset[Place] = frozenset({"trash", "spam"})
_KEPT: frozenset[Place] = frozenset({"archive", "spam"})


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: its check, and its JSON Schema for a model, if a model may give it."""

    check: Callable[[str, object], None]
    for_model: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """One type of action.

    `asked` is the wish ("archive it"), `done` the result ("archived"), `button` the label of the button in forms.
    `detail` follows each and may name the {label}, the recipients {to} and the time {when}. `by_hand` is the user's own
    way to do it in the mailbox.
    """

    asked: str
    done: str
    button: str
    detail: str = ""
    by_hand: str = ""
    change: LabelChange | None = None
    """The labels it adds and removes; None if it is no change of labels."""
    operation: Operation = "relabel"
    inverse: str | None = None
    """The name of its undo; None if nothing reverses it."""
    hides: Hiding = "never"
    ends_in: Place | None = None
    """Where the message is afterwards, if the action says so."""
    contrary: frozenset[Place] = frozenset()
    """Where a user puts a message who would not have done this."""
    parameters: Mapping[str, Parameter] = field(default_factory=dict[str, Parameter])
    check_together: Callable[[Mapping[str, Any]], None] | None = None
    """Checks parameters that depend on each other."""
    argument: str | None = None
    """The parameter that a text after the name of the action sets."""
    example: str = ""
    """The placeholder of the field for its value in a form; empty without a value."""
    proposal: str = ""
    """The parameters that an agent may give, in words."""
    is_offered_to_model: bool = True

    @property
    def names_label(self) -> bool:
        """Whether it is about a label that its parameters name."""
        return "label" in self.parameters

    @property
    def says_where(self) -> bool:
        """Whether it says where the message goes. Two actions that do contradict each other."""
        touched = frozenset[str]() if self.change is None else self.change.add | self.change.remove
        return self.operation == "delete" or bool(touched & PLACES)

    @property
    def leaves_inbox(self) -> bool:
        """Whether it takes a message out of the inbox."""
        change = self.change or LabelChange()
        return self.operation == "delete" or "INBOX" in change.remove or bool(change.add & (PLACES - {"INBOX"}))


_LABEL = {
    "label": Parameter(check_label, {"type": ["string", "null"], "description": "one of the allowed labels"}),
}

SPECS: Mapping[ActionType, ActionSpec] = {
    "archive": ActionSpec(
        "archive it",
        "archived",
        "Archive",
        by_hand="archived it",
        change=LabelChange(remove=frozenset({"INBOX"})),
        inverse="apply_label",
        hides="always",
        ends_in="archive",
        contrary=_THROWN_AWAY,
    ),
    "apply_label": ActionSpec(
        "label it",
        "labelled",
        "Apply the label",
        "{label}",
        by_hand="gave it this label",
        change=LabelChange(add=frozenset({THE_LABEL})),
        inverse="remove_label",
        hides="if_folder",
        contrary=_THROWN_AWAY,
        parameters=_LABEL,
        argument="label",
        example="Receipts",
        proposal="label, one of the user's own",
    ),
    "remove_label": ActionSpec(
        "remove the label",
        "removed from the label",
        "Remove the label",
        "{label}",
        by_hand="removed this label",
        change=LabelChange(remove=frozenset({THE_LABEL})),
        inverse="apply_label",
        hides="if_folder",
        parameters=_LABEL,
        argument="label",
        example="Receipts",
        proposal="label, one of the user's own",
    ),
    "mark_read": ActionSpec(
        "mark it as read",
        "marked as read",
        "Mark as read",
        by_hand="read it",
        change=LabelChange(remove=frozenset({"UNREAD"})),
        inverse="mark_unread",
        hides="always",
    ),
    "mark_unread": ActionSpec(
        "mark it as unread",
        "marked as unread",
        "Mark as unread",
        by_hand="marked it as unread",
        change=LabelChange(add=frozenset({"UNREAD"})),
        inverse="mark_read",
    ),
    "star": ActionSpec(
        "star it",
        "starred",
        "Star",
        by_hand="starred it",
        change=LabelChange(add=frozenset({"STARRED"})),
        inverse="unstar",
        contrary=_THROWN_AWAY,
    ),
    "unstar": ActionSpec(
        "remove its star",
        "unstarred",
        "Remove the star",
        by_hand="removed its star",
        change=LabelChange(remove=frozenset({"STARRED"})),
        inverse="star",
    ),
    "trash": ActionSpec(
        "move it to the trash",
        "moved to the trash",
        "Move to the trash",
        by_hand="moved it to the trash",
        change=LabelChange(add=frozenset({"TRASH"})),
        inverse="restore",
        hides="always",
        ends_in="trash",
        contrary=_KEPT,
    ),
    "restore": ActionSpec(
        "take it out of the trash",
        "taken out of the trash",
        "Take out of the trash",
        by_hand="took it out of the trash",
        change=LabelChange(remove=frozenset({"TRASH"})),
        inverse="trash",
    ),
    "delete": ActionSpec(
        "delete it for good",
        "deleted for good",
        "Delete for good",
        by_hand="moved it to the trash",
        operation="delete",
        ends_in="trash",
        contrary=_KEPT,
    ),
    "snooze": ActionSpec(
        "snooze it",
        "snoozed",
        "Snooze",
        "{when}",
        change=LabelChange(frozenset({THE_LABEL}), frozenset({"INBOX"})),
        operation="snooze",
        inverse="unsnooze",
        hides="if_long",
        contrary=_THROWN_AWAY,
        parameters={
            "until": Parameter(accept),
            "amount": Parameter(accept, {"type": ["number", "null"], "description": "how many of the units"}),
            "units": Parameter(
                accept, {"type": ["string", "null"], "enum": [*UNITS, None], "description": "the units of the amount"}
            ),
        },
        check_together=check_snooze,
        example="2 days",
        proposal="until, or amount and units",
    ),
    "forward": ActionSpec(
        "forward it",
        "forwarded",
        "Forward",
        "to {to}",
        operation="send",
        parameters={
            "to": Parameter(check_addresses),
            "cc": Parameter(check_copies),
            "subject": Parameter(check_subject),
            "note": Parameter(check_text),
            "html": Parameter(check_text),
            "attachments": Parameter(check_attachments),
        },
        argument="to",
        example="books@example.com",
        is_offered_to_model=False,
    ),
    "auto_reply": ActionSpec(
        "reply to it",
        "replied to",
        "Reply",
        operation="send",
        parameters={
            "text": Parameter(
                check_needed_text, {"type": ["string", "null"], "description": "the plain text of the answer"}
            ),
            "html": Parameter(check_text),
            "subject": Parameter(check_subject),
            "cc": Parameter(check_copies),
            "attachments": Parameter(check_attachments),
        },
        argument="text",
        example="I am away until Monday.",
        proposal="text, and subject",
    ),
}
IRREVERSIBLE = frozenset[str](name for name, spec in SPECS.items() if spec.inverse is None)
SENDING = frozenset[str](name for name, spec in SPECS.items() if spec.operation == "send")
# The undo of each reversible action, by name.
INVERSES: Mapping[str, str] = {
    **{name: spec.inverse for name, spec in SPECS.items() if spec.inverse is not None},
    "several": "several",
}


def label_change(action_type: ActionType, label_id: str | None = None) -> LabelChange:
    """The change that an action asks for on any message. `label_id` is its label, or the snooze label."""
    change = SPECS[action_type].change
    if change is None or (label_id is None and THE_LABEL in change.add | change.remove):
        raise Fatal(f"{action_type} is not a change of labels")
    return LabelChange(_with_label_id(change.add, label_id), _with_label_id(change.remove, label_id))


def _with_label_id(labels: frozenset[str], label_id: str | None) -> frozenset[str]:
    return frozenset(label_id if each == THE_LABEL and label_id is not None else each for each in labels)


def undo_type(action_type: RecordedType) -> ActionType:
    """The type of action under which the undo of this one is recorded."""
    inverse = INVERSES[action_type]
    for each in ACTION_TYPES:
        if each == inverse:
            return each
    return "apply_label"


def wanted_label(action_type: ActionType, parameters: Mapping[str, Any]) -> str | None:
    """The label that an action names, if any. Raises Fatal when a required one is missing: no retry would help."""
    if not SPECS[action_type].names_label:
        return None
    label = parameters.get("label")
    if not isinstance(label, str) or not label.strip():
        raise Fatal(f"{action_type} needs a label in its parameters; edit the rule that requested it")
    return label


def proposal_parameters() -> str:
    """The parameters that an agent may give, in words, with the actions that take them."""
    takers: dict[str, list[str]] = {}
    for name, spec in SPECS.items():
        if spec.proposal:
            takers.setdefault(spec.proposal, []).append(name)
    return "; ".join(f"{given}, for {' and '.join(names)}" for given, names in takers.items())


def known_action(name: str) -> ActionType:
    """The action of this name. Raises BadInput when there is none."""
    for action_type in ACTION_TYPES:
        if action_type == name:
            return action_type
    raise BadInput("action", f"{name!r} is unknown", f"use one of {', '.join(ACTION_TYPES)}")


def check_parameters(action_type: str, parameters: Mapping[str, Any]) -> None:
    """Check the parameters of an action. Raises BadInput, which names the field and the remedy."""
    spec = SPECS[known_action(action_type)]
    for name in parameters:
        if name not in spec.parameters:
            known = f"it takes {', '.join(spec.parameters)}" if spec.parameters else "it takes none"
            raise BadInput(f"parameters.{name}", f"is not a parameter of {action_type}", known)
    for name, parameter in spec.parameters.items():
        parameter.check(f"parameters.{name}", parameters.get(name))
    if spec.check_together is not None:
        spec.check_together(parameters)


def action_hash(message_id: UUID, action_type: str, parameters: Mapping[str, Any]) -> str:
    """The fingerprint of exactly this action on this message; an approval is bound to it."""
    content = [str(message_id), action_type, parameters]
    return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()
