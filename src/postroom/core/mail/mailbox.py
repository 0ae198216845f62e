"""The mailbox as actions see it: what a message is like, and how it is changed. Gmail is the port's first
implementation."""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, Protocol


class SeenMessage(NamedTuple):
    """A message as it is now, and the id of the last change of it in the history of the mailbox."""

    labels: frozenset[str]
    history_id: int


class MailboxLabel(NamedTuple):
    """A label of a mailbox. Those of the provider itself are `system`, all others are the user's."""

    id: str
    name: str
    is_system: bool


def find_label(labels: Iterable[MailboxLabel], name: str) -> MailboxLabel | None:
    """By name or id, among those of the user: what the provider's own stand for are actions of their own.

    Gmail keeps the case of a name, and allows no second one that differs in case only.
    """
    wanted, of_user = name.casefold(), [label for label in labels if not label.is_system]
    found = next((label for label in of_user if label.name.casefold() == wanted), None)
    return found or next((label for label in of_user if label.id == name), None)


class Mailbox(Protocol):
    """What an action may do to a mailbox. Labels are named by their ids, except where a name is asked for."""

    async def labels_of(self, message_id: str) -> frozenset[str]:
        """The labels that the message has now: the pre-image of whatever is done next."""
        ...

    async def look_at(self, message_id: str) -> SeenMessage:
        """Its labels, and how far the history of the message reaches."""
        ...

    async def entered_inbox_since(self, message_id: str, history_id: int) -> bool:
        """Whether it was put into the inbox after this change. False when the mailbox no longer remembers."""
        ...

    async def modify(self, message_id: str, add: Collection[str] = (), remove: Collection[str] = ()) -> frozenset[str]:
        """Adds and removes labels. Returns the labels that the message has afterwards."""
        ...

    async def trash(self, message_id: str) -> frozenset[str]:
        """Moves it to the trash. Returns the labels that it has afterwards."""
        ...

    async def untrash(self, message_id: str) -> frozenset[str]:
        """Takes it out of the trash, to no other place. Returns the labels that it has afterwards."""
        ...

    async def delete(self, message_id: str) -> None:
        """Deletes it for good: there is no way back."""
        ...

    async def labels(self) -> Sequence[MailboxLabel]:
        """All labels of the mailbox, which are never none."""
        ...

    async def create_label(self, name: str) -> str:
        """The id of a new label of this name, or of one that somebody else has created at the same time."""
        ...

    async def label_id(self, name: str, create: bool = True) -> str:
        """The id of the label of this name, which is created if it is missing and `create` allows it."""
        ...
