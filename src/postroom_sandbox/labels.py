"""The labels of a mailbox: fixed system labels, and the user's own."""

import re
from dataclasses import dataclass, field, replace
from typing import Any, cast

from postroom_sandbox.refusal import conflict, invalid, missing

Json = dict[str, Any]

SYSTEM = (
    "INBOX", "SENT", "DRAFT", "TRASH", "SPAM", "STARRED", "UNREAD", "IMPORTANT", "CHAT",
    "CATEGORY_PERSONAL", "CATEGORY_SOCIAL", "CATEGORY_PROMOTIONS", "CATEGORY_UPDATES", "CATEGORY_FORUMS",
)  # fmt: skip

# Only Gmail itself adds and removes these.
AUTOMATIC = frozenset({"SENT", "DRAFT", "CHAT"})

# A message has at most one of these: adding one removes the others.
PLACES = frozenset({"INBOX", "SPAM", "TRASH"})

RESERVED_NAMES = frozenset(
    {*(name.casefold() for name in SYSTEM), "drafts", "starred", "chats", "all mail", "muted", "sent mail", "archive"}
)
LABEL_LIST_VISIBILITY = frozenset({"labelShow", "labelShowIfUnread", "labelHide"})
MESSAGE_LIST_VISIBILITY = frozenset({"show", "hide"})
LONGEST_NAME = 225
_COLOR = re.compile(r"#[0-9a-f]{6}")
_PLAIN = {"textColor": "#000000", "backgroundColor": "#ffffff"}
_HYPHENS = re.compile(r"[ \"&()/{}|]")
MOST_LABELS = 10_000
LOOK = ("labelListVisibility", "messageListVisibility", "color")


@dataclass(frozen=True)
class Label:
    id: str
    name: str
    type: str
    look: Json = field(default_factory=dict[str, Any])

    def as_json(self) -> Json:
        return {"id": self.id, "name": self.name, **self.look, "type": self.type}


class Labels:
    """The labels of one mailbox, by id."""

    def __init__(self) -> None:
        self._by_id = {name: Label(name, name, "system") for name in SYSTEM}
        self._next = 1

    def all(self) -> list[Label]:
        return list(self._by_id.values())

    def get(self, label_id: str) -> Label:
        if label_id not in self._by_id:
            raise missing()
        return self._by_id[label_id]

    def named(self, name: str) -> Label | None:
        """The label named in a search: by id or name, in any case, with spaces and some marks also as hyphens."""
        wanted = _normalize(name)
        return next((label for label in self.all() if wanted in (_normalize(label.name), _normalize(label.id))), None)

    def create(self, name: str, look: Json) -> Label:
        self._check(name, look)
        if len(self._by_id) >= MOST_LABELS:
            raise invalid("Too many labels")
        label = Label(f"Label_{self._next}", name, "user", look)
        self._next += 1
        self._by_id[label.id] = label
        return label

    def put_back(self, label: Label) -> None:
        """Add a label that was here before, under the id that it had."""
        self._by_id[label.id] = label
        number = label.id.rpartition("_")[2]
        self._next = max(self._next, int(number) + 1 if number.isdecimal() else 1)

    def update(self, label_id: str, name: str, look: Json) -> Label:
        """Change the name and look of a label; it stays on its messages."""
        label = self.get(label_id)
        if label.type == "system":
            raise invalid("Invalid update request")
        self._check(name, look, besides=label)
        self._by_id[label_id] = replace(label, name=name, look=look)
        return self._by_id[label_id]

    def delete(self, label_id: str) -> None:
        if self.get(label_id).type == "system":
            raise invalid("Invalid delete request")
        del self._by_id[label_id]

    def check_known(self, label_ids: frozenset[str]) -> None:
        for label_id in sorted(label_ids):
            if label_id not in self._by_id:
                raise invalid(f"Invalid label: {label_id}")

    def check_change(self, add: frozenset[str], remove: frozenset[str]) -> None:
        """Refuse labels that a user may not add or remove."""
        self.check_known(add | remove)
        for label_id in sorted((add | remove) & AUTOMATIC):
            raise invalid(f"Invalid label: {label_id}")
        if add & remove:
            raise invalid("Cannot both add and remove the same label")
        if len(add & PLACES) > 1:
            raise invalid("Can only add one of: INBOX, SPAM, TRASH")

    def _check(self, name: str, look: Json, besides: Label | None = None) -> None:
        folded = name.casefold()
        if not name.strip() or len(name) > LONGEST_NAME or folded in RESERVED_NAMES or not name.isprintable():
            raise invalid("Invalid label name")
        if any(label.name.casefold() == folded for label in self.all() if label is not besides):
            raise conflict("Label name exists or conflicts")
        if look.get("labelListVisibility", "labelShow") not in LABEL_LIST_VISIBILITY:
            raise invalid("Invalid value at 'label.label_list_visibility'")
        if look.get("messageListVisibility", "show") not in MESSAGE_LIST_VISIBILITY:
            raise invalid("Invalid value at 'label.message_list_visibility'")
        color: object = look.get("color", dict(_PLAIN))
        if not isinstance(color, dict) or cast(Json, color).keys() != _PLAIN.keys():
            raise invalid("Invalid value at 'label.color'")
        if not all(isinstance(value, str) and _COLOR.fullmatch(value) for value in cast(Json, color).values()):
            raise invalid("Invalid value at 'label.color'")


def after_change(labels: frozenset[str], add: frozenset[str], remove: frozenset[str]) -> frozenset[str]:
    """The labels after a change, including side effects."""
    displaced = PLACES - add if add & PLACES else frozenset[str]()
    return (labels - remove - displaced) | add


def _normalize(name: str) -> str:
    return _HYPHENS.sub("-", name.casefold())
