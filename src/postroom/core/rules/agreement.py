"""Whether the user agrees with a decision, judged by their later changes to the message in the mailbox.

Reading a message says nothing. What counts is where they put it, how they labelled it, and what they reversed.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from postroom.core.actions.action import INVERSES, SPECS, ActionType, DecidedType, Place, label_change

# No user reacts sooner: a change reported this soon had already begun when the action was done.
SETTLING = timedelta(seconds=10)
# A later change is no longer a reaction to the action: the user is done with the message.
ANSWERED_WITHIN = timedelta(days=14)

_PLACED: Mapping[Place, str] = {
    "archive": SPECS["archive"].by_hand,
    "trash": SPECS["trash"].by_hand,
    "spam": "marked it as spam",
    "inbox": "moved it back to the inbox",
}


@dataclass(frozen=True, slots=True)
class OwnerLabelChange:
    """The net change that the user made to a message; labels are ids."""

    added: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    deleted: bool = False

    @property
    def place(self) -> Place | None:
        """Where the user put the message; None when it stayed where it was."""
        if self.deleted or "TRASH" in self.added:
            return "trash"
        if "SPAM" in self.added:
            return "spam"
        if "INBOX" in self.added:
            return "inbox"
        return "archive" if "INBOX" in self.removed else None


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether the user followed the decision, and their own change."""

    agreed: bool
    what: str


def agreement(
    action_type: ActionType, label_id: str | None, change: OwnerLabelChange, own_labels: Collection[str]
) -> Judgement | None:
    """Whether the user did the same as a decision in shadow; None when their change says nothing about it.

    `label_id` is the label that the decision names, if the mailbox has it; `own_labels` are the user's labels.
    """
    spec, place = SPECS[action_type], change.place
    if _is_same(action_type, label_id, change):
        return Judgement(True, spec.by_hand)
    if place is not None and place in spec.contrary:
        return Judgement(False, _PLACED[place])
    if spec.ends_in == "trash" and (kept := _reason_to_keep(change, own_labels)) is not None:
        return Judgement(False, kept)
    if action_type == "apply_label" and change.added & frozenset(own_labels):
        return Judgement(False, "gave it another label")
    return None


def _is_same(action_type: ActionType, label_id: str | None, change: OwnerLabelChange) -> bool:
    spec = SPECS[action_type]
    if spec.ends_in is not None:
        return change.place == spec.ends_in
    if spec.change is None or not spec.by_hand:
        return False  # sending and snoozing leave no trace to compare
    if label_id is None and spec.names_label:
        return False
    wanted = label_change(action_type, label_id)
    return wanted.add <= change.added and wanted.remove <= change.removed


def _reason_to_keep(change: OwnerLabelChange, own_labels: Collection[str]) -> str | None:
    if "STARRED" in change.added:
        return "starred it"
    return "gave it a label" if change.added & frozenset(own_labels) else None


@dataclass(frozen=True, slots=True)
class PastAction:
    """An action of ours on a message, with its undo hint; without `executed_at` it is still in progress."""

    action_type: DecidedType
    executed_at: datetime | None
    hint: Mapping[str, Any]


def is_ours(change: OwnerLabelChange, done: Collection[PastAction], now: datetime) -> bool:
    """Whether the change is, or may be, our own: by an action, an undo, or snoozed mail that comes back."""
    return any(_is_effect_of(each, change, now) for each in done)


def _is_effect_of(done: PastAction, change: OwnerLabelChange, now: datetime) -> bool:
    if done.executed_at is None or now - done.executed_at < SETTLING:
        return True
    if (until := _until(done.hint)) is None or now < until:
        return False
    return change.added <= {"INBOX"} and change.removed <= {done.hint.get("snooze_label_id")} and not change.deleted


def how_reversed(done: PastAction, change: OwnerLabelChange, now: datetime) -> str | None:
    """How the user reversed an action of ours, in words; None when they did not."""
    if done.executed_at is None or now - done.executed_at > ANSWERED_WITHIN or done.action_type == "mark_unread":
        return None
    if (until := _until(done.hint)) is not None and now >= until:
        return None
    inverse: Mapping[str, list[str]] = done.hint.get("inverse_parameters", {})
    back = (change.added & frozenset(inverse.get("add_labels", ()))) | (
        change.removed & frozenset(inverse.get("remove_labels", ()))
    )
    # Reading a message, or marking it unread, is a reaction only to an action about just that.
    back -= frozenset() if done.action_type == "mark_read" else {"UNREAD"}
    return _words(done.action_type, back) if back else None


def _words(action_type: str, back: frozenset[str]) -> str:
    if "INBOX" in back:
        return _PLACED["inbox"]
    inverse = INVERSES.get(action_type)
    return next((spec.by_hand for name, spec in SPECS.items() if name == inverse), "reversed it")


def _until(hint: Mapping[str, Any]) -> datetime | None:
    """When snoozed mail comes back by itself; None when it is not snoozed."""
    given = hint.get("snooze_until")
    return datetime.fromisoformat(given) if isinstance(given, str) else None
