"""The thirteen actions on a message, their parameters, and what each changes.

Most actions add some labels and remove others. What an action really changed follows from the labels before it, the
pre-image; `core/actions/undo.py` computes the inverse. INBOX, SPAM and TRASH are places, and so are the folders of a
mailbox that keeps mail in folders: a message is in at most one of them, and putting it in one takes it out of the
others.
"""

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, assert_never, cast, get_args
from uuid import UUID

import orjson

from postroom.core.actions.snooze import check_snooze
from postroom.core.errors import BadInput, Fatal
from postroom.core.mail.addresses import canonical
from postroom.core.mail.label_names import looks_like

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
# No undo reverses these.
IRREVERSIBLE = frozenset({"delete", "forward", "auto_reply"})
# The undo of each of the others, by name.
INVERSES: Mapping[str, str] = {
    "archive": "apply_label",
    "apply_label": "remove_label",
    "remove_label": "apply_label",
    "mark_read": "mark_unread",
    "mark_unread": "mark_read",
    "star": "unstar",
    "unstar": "star",
    "trash": "restore",
    "restore": "trash",
    "snooze": "unsnooze",
    "several": "several",
}
SENDING = frozenset({"forward", "auto_reply"})
PLACES = frozenset({"INBOX", "SPAM", "TRASH"})
FOLDER = "folder:"
"""The ids of labels that are folders of the user begin with this."""
# Gmail's own labels are states and places that have actions of their own, each with its own safety policy. Applying or
# removing them like a user's label would bypass that policy.
INSTEAD: Mapping[str, str] = {
    "INBOX": "use archive, or restore for what is in the trash; undo brings back what was archived",
    "TRASH": "use trash, or restore",
    "SPAM": "use trash, or report it as spam in your mail program",
    "UNREAD": "use mark_unread, or mark_read",
    "STARRED": "use star, or unstar",
    "IMPORTANT": "use star; Gmail itself decides what is important",
    "SENT": "use a label of your own; only Gmail adds this one",
    "DRAFT": "use a label of your own; only Gmail adds this one",
    "CHAT": "use a label of your own; only Gmail adds this one",
}
CATEGORIES = "CATEGORY_"
# Names that Gmail shows for its own places. Gmail refuses a label that is spelled exactly like one of them.
SHOWN_BY_GMAIL = ("Drafts", "Chats", "All Mail", "Sent Mail", "Muted", "Archive")
LONGEST_LABEL = 225
LONGEST_TEXT = 100_000
LONGEST_SUBJECT = 500
MOST_RECIPIENTS = 20
MOST_ATTACHMENTS = 10
LARGEST_ATTACHMENTS = 1_400_000
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_MIME_TYPE = re.compile(r"(?!multipart/|message/)[a-z0-9!#$&^_.+-]{1,80}/[a-z0-9!#$&^_.+-]{1,120}")


def places_in(labels: Iterable[str]) -> frozenset[str]:
    """Those of the labels that are places."""
    return frozenset(each for each in labels if each in PLACES or each.startswith(FOLDER))


@dataclass(frozen=True, slots=True)
class LabelChange:
    """The labels, by id, that an action adds and removes."""

    add: frozenset[str] = frozenset()
    remove: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.add or self.remove)

    def effective(self, before: frozenset[str]) -> "LabelChange":
        """The part of this change that takes effect on a message with these labels, including places that it leaves."""
        add = self.add - before
        displaced = places_in(before) - self.add if places_in(add) else frozenset[str]()
        return LabelChange(add, (self.remove | displaced) & before)

    def applied_to(self, labels: frozenset[str]) -> frozenset[str]:
        """The labels of a message after the change."""
        change = self.effective(labels)
        return (labels - change.remove) | change.add

    @property
    def inverse(self) -> "LabelChange":
        return LabelChange(self.remove, self.add)


_FIXED: Mapping[ActionType, LabelChange] = {
    "archive": LabelChange(remove=frozenset({"INBOX"})),
    "mark_read": LabelChange(remove=frozenset({"UNREAD"})),
    "mark_unread": LabelChange(add=frozenset({"UNREAD"})),
    "star": LabelChange(add=frozenset({"STARRED"})),
    "unstar": LabelChange(remove=frozenset({"STARRED"})),
    "trash": LabelChange(add=frozenset({"TRASH"})),
    "restore": LabelChange(remove=frozenset({"TRASH"})),
}


def label_change(action_type: ActionType, label_id: str | None = None) -> LabelChange:
    """The change that an action asks for, whatever the message has. `label_id` is its label, or the snooze label."""
    match action_type:
        case "apply_label" if label_id is not None:
            return LabelChange(add=frozenset({label_id}))
        case "remove_label" if label_id is not None:
            return LabelChange(remove=frozenset({label_id}))
        case "snooze" if label_id is not None:
            return LabelChange(frozenset({label_id}), frozenset({"INBOX"}))
        case "archive" | "mark_read" | "mark_unread" | "star" | "unstar" | "trash" | "restore":
            return _FIXED[action_type]
        case "apply_label" | "remove_label" | "snooze" | "delete" | "forward" | "auto_reply":
            raise Fatal(f"{action_type} is not a change of labels")
        case _:
            assert_never(action_type)


def joint_change(changes: Iterable[LabelChange], before: frozenset[str]) -> LabelChange:
    """The change that takes effect when these are made one after the other on a message with these labels."""
    after = before
    for change in changes:
        after = change.applied_to(after)
    return LabelChange(after - before, before - after)


def operation_of(action_type: ActionType) -> Operation:
    match action_type:
        case "delete" | "snooze":
            return action_type
        case "forward" | "auto_reply":
            return "send"
        case (
            "archive" | "apply_label" | "remove_label" | "mark_read" | "mark_unread" | "star" | "unstar" | "trash"
            | "restore"
        ):  # fmt: skip
            return "relabel"
        case _:
            assert_never(action_type)


def wanted_label(action_type: str, parameters: Mapping[str, Any]) -> str | None:
    """The label that an action names, if any. Raises Fatal when a required one is missing: no retry would help."""
    if action_type not in ("apply_label", "remove_label"):
        return None
    label = parameters.get("label")
    if not isinstance(label, str) or not label.strip():
        raise Fatal(f"{action_type} needs a label in its parameters; edit the rule that requested it")
    return label


def known_action(name: str) -> ActionType:
    """The action of this name. Raises BadInput when there is none."""
    for action_type in ACTION_TYPES:
        if action_type == name:
            return action_type
    raise BadInput("action", f"{name!r} is unknown", f"use one of {', '.join(ACTION_TYPES)}")


def check_parameters(action_type: str, parameters: Mapping[str, Any]) -> None:
    """Check the parameters of an action. Raises BadInput, which names the field and the remedy."""
    known_action(action_type)
    checks = _CHECKS.get(action_type, {})
    for name in parameters:
        if name not in checks:
            known = f"it takes {', '.join(checks)}" if checks else "it takes none"
            raise BadInput(f"parameters.{name}", f"is not a parameter of {action_type}", known)
    for name, check in checks.items():
        check(f"parameters.{name}", parameters.get(name))
    if action_type == "snooze":
        check_snooze(parameters)


def recipients_of(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """The recipients of a forward, given as one address or a list."""
    return _as_tuple(parameters.get("to"))


def copies_of(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """The Cc recipients of what is sent."""
    return _as_tuple(parameters.get("cc"))


def _as_tuple(given: object) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(cast("Sequence[str]", given or ()))


def action_hash(message_id: UUID, action_type: str, parameters: Mapping[str, Any]) -> str:
    """The fingerprint of exactly this action on this message; an approval is bound to it."""
    content = [str(message_id), action_type, parameters]
    return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _label(field: str, value: object) -> None:
    if not isinstance(value, str) or not value.strip():
        raise BadInput(field, "is missing or empty", "name a label, such as Receipts")
    if len(value) > LONGEST_LABEL or not value.isprintable():
        raise BadInput(field, "is not a valid label name", f"use up to {LONGEST_LABEL} printable characters")
    if (instead := instead_of_label(value)) is not None:
        raise BadInput(field, f"{value.strip()!r} is a label of Gmail itself, not one of the user's", instead)


def instead_of_label(name: str) -> str | None:
    """The remedy for a label of Gmail's own, or for a name that looks like one; None for a user's label."""
    if unicodedata.normalize("NFKC", name).strip().casefold().startswith(CATEGORIES.casefold()):
        return "use a label of your own; categories are Gmail's"
    own = looks_like(name, INSTEAD)
    if own is not None:
        return INSTEAD[own]
    if (looks_like(name, SHOWN_BY_GMAIL) or name).casefold() != name.casefold():
        return "use a name that cannot be taken for one of Gmail's own"
    return None


def _addresses(field: str, value: object) -> None:
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list | tuple) or not given:
        raise BadInput(field, "is missing", "name one address, or a list of them")
    addresses = cast("Sequence[object]", given)
    if len(addresses) > MOST_RECIPIENTS:
        raise BadInput(field, f"has {len(addresses)} addresses", f"use at most {MOST_RECIPIENTS}")
    for address in addresses:
        if not isinstance(address, str) or not is_address(address):
            raise BadInput(field, "contains something that is not a mail address", "write each as ada@example.com")


def _copies(field: str, value: object) -> None:
    if value is not None:
        _addresses(field, value)


def _attachments(field: str, value: object) -> None:
    """Check files in base64. Few and small, since they are stored with the action."""
    if value is None:
        return
    given = cast("Sequence[Any]", value if isinstance(value, list | tuple) else ())
    wanted = {"filename": str, "data": str, "mime_type": str}
    for each in given:
        if (
            not isinstance(each, Mapping)
            or not {"filename", "data"} <= cast("Mapping[str, Any]", each).keys() <= wanted.keys()
        ):
            raise BadInput(
                field, "contains something that is not an attachment", "give each filename, mime_type and data"
            )
        file = cast("Mapping[str, Any]", each)
        if any(not isinstance(file[name], str) for name in file) or not _BASE64.fullmatch(file["data"]):
            raise BadInput(
                field, "contains data that is not base64", "encode each file in standard base64, without breaks"
            )
        if "mime_type" in file and not _MIME_TYPE.fullmatch(file["mime_type"]):
            raise BadInput(field, "contains an invalid mime_type", "write it as application/pdf")
    if not given or len(given) > MOST_ATTACHMENTS or sum(len(each["data"]) for each in given) > LARGEST_ATTACHMENTS:
        problem = f"are none, more than {MOST_ATTACHMENTS}, or too large"
        raise BadInput(field, problem, f"give a list with up to {LARGEST_ATTACHMENTS:,} characters of base64")


def is_address(text: str) -> bool:
    """Whether the text is one bare address, with nothing in it that could start another header or recipient."""
    return text.isprintable() and not set(text) & set(' ,;:<>()[]\\"') and canonical(text) is not None


def _needed_text(field: str, value: object) -> None:
    if value is None or (isinstance(value, str) and not value.strip()):
        raise BadInput(field, "is missing or empty", "give the text of the reply")
    _text(field, value)


def _text(field: str, value: object, longest: int = LONGEST_TEXT) -> None:
    if value is None:
        return
    if not isinstance(value, str):
        raise BadInput(field, "is not a text", "use a text")
    if len(value) > longest or "\0" in value:
        raise BadInput(field, f"has {len(value)} characters, or a NUL among them", f"use at most {longest}")


def _subject(field: str, value: object) -> None:
    _text(field, value, LONGEST_SUBJECT)
    if isinstance(value, str) and not value.isprintable():
        raise BadInput(field, "contains line breaks or control characters", "use one line")


def _any(field: str, value: object) -> None:
    """Accept any value; `check_parameters` checks it together with the parameters beside it."""


_CHECKS: Mapping[str, Mapping[str, Callable[[str, object], None]]] = {
    "apply_label": {"label": _label},
    "remove_label": {"label": _label},
    "snooze": {"until": _any, "amount": _any, "units": _any},
    "forward": {
        "to": _addresses,
        "cc": _copies,
        "subject": _subject,
        "note": _text,
        "html": _text,
        "attachments": _attachments,
    },
    "auto_reply": {
        "text": _needed_text,
        "html": _text,
        "subject": _subject,
        "cc": _copies,
        "attachments": _attachments,
    },
}
