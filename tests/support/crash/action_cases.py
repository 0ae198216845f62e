"""Messages, each with what a rule or a person requests, and what its mailbox must have seen at the end."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from postroom.core.actions.action import DecidedType
from postroom.core.actions.steps import Step, combined
from postroom.triage.act.executor import DEFAULT_SNOOZE_LABEL

ARRIVED = frozenset({"INBOX", "UNREAD"})
# Longer than it takes the next process to come: what is to be woken in the end sleeps until then.
SNOOZED_FOR = timedelta(days=300)


@dataclass(frozen=True)
class Kind:
    """One way through the product. `seen` are the changes of the message, in order; `{label}` is the case's own."""

    action: DecidedType
    seen: tuple[str, ...]
    undone: bool = True
    asked: bool = False
    wakes: bool = False
    trashes: bool = False
    labels: frozenset[str] = ARRIVED
    tries: int | None = None


KINDS: Mapping[str, Kind] = {
    "archive": Kind("archive", ("-INBOX", "+INBOX")),
    "apply_label": Kind("apply_label", ("+{label}", "-{label}")),
    "trash": Kind("trash", ("+TRASH", "-INBOX", "-TRASH", "+INBOX")),
    "restore": Kind("restore", ("-TRASH", "+TRASH"), labels=frozenset({"TRASH", "UNREAD"})),
    "mark_read": Kind("mark_read", ("-UNREAD", "+UNREAD")),
    "star, on request": Kind("star", ("+STARRED", "-STARRED"), asked=True),
    "delete, on request": Kind("delete", ("gone",), undone=False, asked=True),
    # The last change is the user's: what comes back after it would be seen.
    "snooze, undone": Kind("snooze", ("+{label}", "-INBOX", "+INBOX", "-{label}", "-INBOX"), wakes=True),
    "snooze, woken": Kind("snooze", ("+{label}", "-INBOX", "+INBOX", "-{label}", "-INBOX"), undone=False, wakes=True),
    "several": Kind("several", ("+{label}", "-INBOX UNREAD", "+INBOX UNREAD", "-{label}")),
    "several, into the trash": Kind(
        "several", ("+STARRED", "+TRASH", "-INBOX", "-TRASH", "+INBOX", "-STARRED"), trashes=True
    ),
    "archive, last try": Kind("archive", ("-INBOX",), undone=False, tries=1),
}


@dataclass(frozen=True)
class Case:
    """One message of the kind."""

    number: int
    name: str
    message_id: str
    gmail_id: str
    classify_id: str

    @property
    def kind(self) -> Kind:
        return KINDS[self.name]

    @property
    def id(self) -> UUID:
        return UUID(self.message_id)

    @property
    def sender(self) -> str:
        return sender_of(self.number)

    @property
    def label(self) -> str:
        """Each label that is put on is one that must be made first; snoozed mail has one for all."""
        return DEFAULT_SNOOZE_LABEL if self.kind.wakes else f"Case/{self.number}"

    @property
    def parameters(self) -> dict[str, Any]:
        match self.kind.action:
            case "apply_label":
                return {"label": self.label}
            case "several":
                steps = [Step("star"), Step("trash")] if self.kind.trashes else self._filed
                return combined(steps)[1]
            case "snooze":
                return {"amount": SNOOZED_FOR.days, "units": "days"}
            case _:
                return {}

    @property
    def _filed(self) -> list[Step]:
        return [Step("apply_label", {"label": self.label}), Step("archive"), Step("mark_read")]

    @property
    def seen(self) -> list[str]:
        return [each.format(label=self.label) for each in self.kind.seen]

    def as_text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str) -> "Case":
        return cls(**json.loads(text))


def sender_of(number: int) -> str:
    return f"case{number}@shop.example"
