"""Changes of labels: those an action makes, and the part that takes effect on a message.

INBOX, SPAM and TRASH are places, and so are the folders of a mailbox that keeps mail in folders: a message is in at
most one of them, and putting it in one takes it out of the others.
"""

from collections.abc import Iterable
from dataclasses import dataclass

PLACES = frozenset({"INBOX", "SPAM", "TRASH"})
FOLDER = "folder:"
"""The ids of labels that are folders of the user begin with this."""


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


def joint_change(changes: Iterable[LabelChange], before: frozenset[str]) -> LabelChange:
    """The change that takes effect when these are made one after the other on a message with these labels."""
    after = before
    for change in changes:
        after = change.applied_to(after)
    return LabelChange(after - before, before - after)
