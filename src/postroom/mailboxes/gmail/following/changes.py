"""Interprets a page of Gmail's history: which messages to read, and what changed about those read before."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from postroom.mailboxes.following.ingester import NOT_MAIL
from postroom.mailboxes.gmail.resources import HistoryRecord, LabelChange, MessageRef


@dataclass(slots=True)
class Change:
    """The net change of one message: for each label, the last thing that happened to it."""

    labels: dict[str, bool] = field(default_factory=dict[str, bool])
    deleted: bool = False

    def as_report(self, message_id: str) -> dict[str, Any]:
        return {
            "message_id": message_id,
            "labels_added": sorted(label for label, is_on in self.labels.items() if is_on),
            "labels_removed": sorted(label for label, is_on in self.labels.items() if not is_on),
            "deleted": self.deleted,
        }


@dataclass(slots=True)
class PageOfChanges:
    """`to_read` are messages in order of appearance; drafts are ignored."""

    to_read: dict[str, MessageRef] = field(default_factory=dict[str, MessageRef])
    changed: dict[str, Change] = field(default_factory=dict[str, Change])

    def reports(self, except_for: Iterable[str] = ()) -> list[dict[str, Any]]:
        """The changes, except for messages that are read after the page: their labels come with them."""
        known = frozenset(except_for)
        return [change.as_report(id) for id, change in self.changed.items() if change.deleted or id not in known]


def changes_in(records: Iterable[HistoryRecord]) -> PageOfChanges:
    page = PageOfChanges()
    for record in records:
        for ref in record.messages_added:
            if not ref.label_ids & NOT_MAIL:
                page.to_read[ref.id] = ref
        for change in record.labels_added:
            _relabel(page, change, is_on=True)
        for change in record.labels_removed:
            _relabel(page, change, is_on=False)
            if change.label_ids & NOT_MAIL and not change.message.label_ids & NOT_MAIL:
                page.to_read[change.message.id] = change.message
        for ref in record.messages_deleted:
            _delete(page, ref)
    return page


def _relabel(page: PageOfChanges, change: LabelChange, is_on: bool) -> None:
    if "DRAFT" in change.message.label_ids:
        return
    found = page.changed.setdefault(change.message.id, Change())
    for label in change.label_ids:
        found.labels[label] = is_on


def _delete(page: PageOfChanges, ref: MessageRef) -> None:
    page.to_read.pop(ref.id, None)
    if "DRAFT" not in ref.label_ids:
        page.changed.setdefault(ref.id, Change()).deleted = True
