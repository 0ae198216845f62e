"""The history of changes in a mailbox, in order, of bounded length."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from postroom_sandbox.refusal import missing

HistoryKind = Literal["messageAdded", "messageDeleted", "labelAdded", "labelRemoved"]

# Gmail keeps about a week. A count limits the memory of a sandbox that runs for months.
REMEMBERED = 50_000


@dataclass(frozen=True)
class Change:
    """One change of one message. `labels` are those afterwards, `changed` those added or removed."""

    id: int
    kind: HistoryKind
    message_id: str
    thread_id: str
    labels: frozenset[str]
    changed: frozenset[str] = frozenset()

    def as_json(self) -> dict[str, Any]:
        message = {"id": self.message_id, "threadId": self.thread_id}
        subject: dict[str, Any] = {"message": {**message, "labelIds": sorted(self.labels)}}
        if self.changed:
            subject["labelIds"] = sorted(self.changed)
        field = {
            "messageAdded": "messagesAdded",
            "messageDeleted": "messagesDeleted",
            "labelAdded": "labelsAdded",
            "labelRemoved": "labelsRemoved",
        }[self.kind]
        return {"id": str(self.id), "messages": [message], field: [subject]}


class History:
    """A bounded list of changes, oldest first."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._changes: deque[Change] = deque()
        self._remembered = remembered
        self._forgotten_up_to = 0

    def record(self, change: Change) -> None:
        self._changes.append(change)
        if len(self._changes) > self._remembered:
            self._forgotten_up_to = self._changes.popleft().id

    def forget(self, up_to: int) -> None:
        """Expire everything up to this id: requests from an older id are refused."""
        self._forgotten_up_to = max(self._forgotten_up_to, up_to)
        while self._changes and self._changes[0].id <= up_to:
            self._changes.popleft()

    def since(self, start: int, kinds: frozenset[str], label_id: str | None) -> Iterator[Change]:
        """The changes after `start`. A label selects changes of messages that have it or just lost it."""
        if start < self._forgotten_up_to:
            raise missing()
        for change in islice(self._changes, self._position_after(start), None):
            if kinds and change.kind not in kinds:
                continue
            if label_id is not None and label_id not in change.labels | change.changed:
                continue
            yield change

    def _position_after(self, start: int) -> int:
        """The index of the first change after `start`, by binary search, since ids have gaps."""
        low, high = 0, len(self._changes)
        while low < high:
            middle = (low + high) // 2
            if self._changes[middle].id <= start:
                low = middle + 1
            else:
                high = middle
        return low
