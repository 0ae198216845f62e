"""A mailbox, whichever provider keeps it: what a message is like, how it is changed, and how a job ends when it fails.

Labels are named by their ids. The places and states that every mailbox has go by one name with all providers: INBOX,
SPAM, TRASH, SENT, DRAFT, UNREAD, STARRED. What goes wrong is a `MailboxError` of the fitting kind. A provider is a
package that implements `Mailbox` here and `Carrier` in `core/mail/carrier.py`; Gmail is the first.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import NamedTuple, Protocol
from uuid import UUID

from postroom.core.actions.permits import Permit
from postroom.core.errors import Fatal, MailboxError, MailboxLater, NeedsPerson, Parked, Retryable
from postroom.core.mail.accounts import parking_key


class SeenMessage(NamedTuple):
    """A message as it is now, and the id of the last change of it in the history of the mailbox."""

    labels: frozenset[str]
    history_id: int


class Placed(NamedTuple):
    """Where a message is after a change: its id, which is a new one where a move gives one, and its labels."""

    provider_message_id: str
    labels: frozenset[str]

    def moved_from(self, provider_message_id: str) -> str | None:
        """The new id; None when it is still the old one."""
        return None if self.provider_message_id == provider_message_id else self.provider_message_id


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
    """One mailbox. Without a permit it only reads. Raises `MailboxError`: `MessageGone` for a message that is not
    there, `LabelMissing` for a label."""

    @property
    def provider(self) -> str: ...

    async def labels_of(self, provider_message_id: str) -> frozenset[str]:
        """The labels that the message has now: the pre-image of whatever is done next."""
        ...

    async def look_at(self, provider_message_id: str) -> SeenMessage:
        """Its labels, and how far the history of the message reaches."""
        ...

    async def entered_inbox_since(self, provider_message_id: str, history_id: int) -> bool:
        """Whether it was put into the inbox after this change. False when the mailbox no longer remembers."""
        ...

    async def raw(self, provider_message_id: str) -> bytes:
        """The whole message, as it came."""
        ...

    async def find(self, query: str = "", label_ids: Collection[str] = ()) -> list[str]:
        """The ids of all messages that have these labels and that the query finds, in the provider's own words."""
        ...

    async def modify(self, provider_message_id: str, add: Collection[str] = (), remove: Collection[str] = ()) -> Placed:
        """Adds and removes labels."""
        ...

    async def trash(self, provider_message_id: str) -> Placed:
        """Moves it to the trash."""
        ...

    async def untrash(self, provider_message_id: str) -> Placed:
        """Takes it out of the trash, to no other place."""
        ...

    async def delete(self, provider_message_id: str) -> None:
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

    async def display_name(self, address: str) -> str:
        """The name that the user writes under with this address; empty where the mailbox does not tell."""
        ...


MailboxUnder = Callable[[Permit], Awaitable[Mailbox]]
"""The mailbox of the permit's account, for changes that rest on the permit."""

MailboxOf = Callable[[UUID], Awaitable[Mailbox]]
"""The mailbox of an account, for reading."""


def job_error_of(error: MailboxError, context: str = "", account_id: UUID | None = None) -> Fatal | Retryable | Parked:
    """How a job ends after `error`. What needs a person waits under the key of its account, if that is known."""
    message = f"{context}: {error}" if context else str(error)
    match error:
        case NeedsPerson() if account_id is not None:
            return Parked(parking_key(account_id), message)
        case MailboxLater():
            return Retryable(message, after=error.retry_after)
        case NeedsPerson():
            return Retryable(message)
        case _:
            return Fatal(message)
