"""Whether the user agrees with a decision, told by what he then did to the message in the mailbox itself.

Reading a message says nothing. What says something is where he put it, how he labelled it, and what he took back.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from postroom.core.actions.action import DecidedType

# A user cannot have answered sooner: what is told of so soon was on its way when the action was done.
SETTLING = timedelta(seconds=10)
# What is changed later than this is no answer to an action any more: the user is done with the message.
ANSWERED_WITHIN = timedelta(days=14)

Place = Literal["archive", "trash", "spam", "inbox"]
_PLACED: Mapping[Place, str] = {
    "archive": "archived it",
    "trash": "put it into the trash",
    "spam": "called it spam",
    "inbox": "put it back into the inbox",
}
_ELSEWHERE: Mapping[str, frozenset[Place]] = {
    "archive": frozenset({"trash", "spam"}),
    "trash": frozenset({"archive", "spam"}),
    "delete": frozenset({"archive", "spam"}),
    "apply_label": frozenset({"trash", "spam"}),
    "star": frozenset({"trash", "spam"}),
    "snooze": frozenset({"trash", "spam"}),
}
_SAME: Mapping[str, Place] = {"archive": "archive", "trash": "trash", "delete": "trash"}


@dataclass(frozen=True, slots=True)
class OwnerLabelChange:
    """What the user changed about a message, all in all: labels by their ids."""

    added: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    deleted: bool = False

    @property
    def place(self) -> Place | None:
        """Where he put it; None when it stayed where it was."""
        if self.deleted or "TRASH" in self.added:
            return "trash"
        if "SPAM" in self.added:
            return "spam"
        if "INBOX" in self.added:
            return "inbox"
        return "archive" if "INBOX" in self.removed else None


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether he did what had been decided, and what he did."""

    agreed: bool
    what: str


def agreement(
    action_type: str, label_id: str | None, moved: OwnerLabelChange, own_labels: Collection[str]
) -> Judgement | None:
    """Of a decision that touched nothing: did the user do the same? None when what he did says nothing about it.

    `label_id` is the label that the decision names, if the mailbox has it; `own_labels` are those of the user.
    """
    if (same := _same(action_type, label_id, moved)) is not None:
        return Judgement(True, same)
    place = moved.place
    if place is not None and place in _ELSEWHERE.get(action_type, frozenset()):
        return Judgement(False, _PLACED[place])
    if action_type in ("trash", "delete") and (kept := _kept(moved, own_labels)) is not None:
        return Judgement(False, kept)
    if action_type == "apply_label" and moved.added & frozenset(own_labels):
        return Judgement(False, "gave it another label")
    return None


def _same(action_type: str, label_id: str | None, moved: OwnerLabelChange) -> str | None:
    match action_type:
        case "archive" | "trash" | "delete":
            return _PLACED[_SAME[action_type]] if moved.place == _SAME[action_type] else None
        case "apply_label":
            return "gave it this label" if label_id in moved.added else None
        case "remove_label":
            return "took this label off" if label_id in moved.removed else None
        case "star":
            return "starred it" if "STARRED" in moved.added else None
        case "unstar":
            return "took its star off" if "STARRED" in moved.removed else None
        case "mark_read":
            return "read it" if "UNREAD" in moved.removed else None
        case "mark_unread":
            return "marked it as unread" if "UNREAD" in moved.added else None
        case "restore":
            return "took it out of the trash" if "TRASH" in moved.removed else None
        case _:
            return None  # what was sent, or sleeps, leaves no trace that could be compared


def _kept(moved: OwnerLabelChange, own_labels: Collection[str]) -> str | None:
    if "STARRED" in moved.added:
        return "starred it"
    return "gave it a label" if moved.added & frozenset(own_labels) else None


@dataclass(frozen=True, slots=True)
class PastAction:
    """An action of ours on a message: under way without `executed_at`, else with the hint of how it is undone."""

    action_type: DecidedType
    executed_at: datetime | None
    hint: Mapping[str, Any]


def is_ours(moved: OwnerLabelChange, done: Collection[PastAction], now: datetime) -> bool:
    """Whether the change is, or may be, our own: an action's, an undo's, or that of snoozed mail that comes back."""
    return any(_caused(each, moved, now) for each in done)


def _caused(done: PastAction, moved: OwnerLabelChange, now: datetime) -> bool:
    if done.executed_at is None or now - done.executed_at < SETTLING:
        return True
    if (until := _until(done.hint)) is None or now < until:
        return False
    return moved.added <= {"INBOX"} and moved.removed <= {done.hint.get("snooze_label_id")} and not moved.deleted


def how_reversed(done: PastAction, moved: OwnerLabelChange, now: datetime) -> str | None:
    """What the user did to reverse an action of ours; None when he did not."""
    if done.executed_at is None or now - done.executed_at > ANSWERED_WITHIN or done.action_type == "mark_unread":
        return None
    if (until := _until(done.hint)) is not None and now >= until:
        return None
    inverse: Mapping[str, list[str]] = done.hint.get("inverse_parameters", {})
    back = (moved.added & frozenset(inverse.get("add_labels", ()))) | (
        moved.removed & frozenset(inverse.get("remove_labels", ()))
    )
    # That he reads it, or has it unread again, is an answer only to an action that was about that.
    back -= frozenset() if done.action_type == "mark_read" else {"UNREAD"}
    return _words(done.action_type, back) if back else None


def _words(action_type: str, back: frozenset[str]) -> str:
    if "INBOX" in back:
        return _PLACED["inbox"]
    match action_type:
        case "trash":
            return "took it out of the trash"
        case "apply_label":
            return "took the label off"
        case "remove_label":
            return "put the label back"
        case "star":
            return "took its star off"
        case _:
            return "took it back"


def _until(hint: Mapping[str, Any]) -> datetime | None:
    """When snoozed mail comes back by itself."""
    given = hint.get("snooze_until")
    return datetime.fromisoformat(given) if isinstance(given, str) else None
