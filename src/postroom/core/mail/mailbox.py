"""The mailbox port that every provider implements, and how its errors end jobs.

Labels are named by their ids. The places and states that every mailbox has have the same names for all providers:
INBOX, SPAM, TRASH, SENT, DRAFT, UNREAD, STARRED. A label whose id begins with `folder:` is a folder of the user, and a
place like the inbox. Every failure is a `MailboxError` of the fitting kind. A provider is a
package that implements `Mailbox` here and `Carrier` in `core/mail/carrier.py`.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from datetime import timedelta
from typing import NamedTuple, Protocol
from uuid import UUID

from postroom.core.actions.permits import Permit
from postroom.core.errors import Fatal, MailboxError, MailboxLater, NeedsPerson, NeedsRepair, NotSent, Parked, Retryable
from postroom.core.mail.accounts import parking_key

REPAIR_PAUSE = timedelta(minutes=5)
# Under this key jobs wait for a moment because this machine is too busy.
BUSY = "busy"
BUSY_PAUSE = timedelta(seconds=2)
"""How long jobs wait before they look again whether the mailbox was repaired."""


class SeenMessage(NamedTuple):
    """A message's current state, and the id of its last change in the history of the mailbox."""

    labels: frozenset[str]
    history_id: int


class Placed(NamedTuple):
    """Where a message is after a change: its id, which may be new after a move, and its labels."""

    provider_message_id: str
    labels: frozenset[str]

    def moved_from(self, provider_message_id: str) -> str | None:
        """The new id; None if it is still the old one."""
        return None if self.provider_message_id == provider_message_id else self.provider_message_id


class MailboxLabel(NamedTuple):
    """A label of a mailbox. The provider's own are `system`, all others are the user's."""

    id: str
    name: str
    is_system: bool


def find_label(labels: Iterable[MailboxLabel], name: str) -> MailboxLabel | None:
    """Find a label of the user by name or id; the provider's own labels have actions of their own.

    Gmail keeps the case of a name, and allows no second one that differs in case only.
    """
    wanted, of_user = name.casefold(), [label for label in labels if not label.is_system]
    found = next((label for label in of_user if label.name.casefold() == wanted), None)
    return found or next((label for label in of_user if label.id == name), None)


class OnePlace:
    """The part of the port about copies, for a mailbox in which a message has none."""

    async def place_of(self, provider_message_id: str) -> str | None:
        del provider_message_id
        return None

    async def expect(
        self,
        provider_message_id: str,
        place: str | None,
        labels: frozenset[str] | None,
        moved_to: frozenset[str] | None = None,
    ) -> None: ...

    async def renamed(self, provider_message_id: str, place: str) -> str | None:
        del provider_message_id, place
        return None


class Mailbox(Protocol):
    """One mailbox. Without a permit it only reads. Raises `MailboxError`: `MessageGone` for a missing message,
    `LabelMissing` for a missing label.
    """

    @property
    def provider(self) -> str: ...

    async def labels_of(self, provider_message_id: str) -> frozenset[str]:
        """The labels that the message has now: the pre-image of the next change."""
        ...

    async def look_at(self, provider_message_id: str) -> SeenMessage:
        """Its labels, and the id of its last change in the history."""
        ...

    async def entered_inbox_since(self, provider_message_id: str, history_id: int) -> bool:
        """Whether it was put into the inbox after this change. False if the mailbox no longer remembers."""
        ...

    async def place_of(self, provider_message_id: str) -> str | None:
        """Where the message was last seen, as a text that only this provider reads; None where a message can be in one
        place only.
        """
        ...

    async def expect(
        self,
        provider_message_id: str,
        place: str | None,
        labels: frozenset[str] | None,
        moved_to: frozenset[str] | None = None,
    ) -> None:
        """Select the copy at this place for all later calls. If its place is no longer known, select one with these
        labels. `moved_to` are the labels that an interrupted attempt may have given it: if it has left, prefer one with
        those.
        """
        ...

    async def renamed(self, provider_message_id: str, place: str) -> str | None:
        """The present label of this place, if the message is still there and the folder was renamed since; None
        otherwise.
        """
        ...

    async def raw(self, provider_message_id: str) -> bytes:
        """The whole raw message."""
        ...

    async def find(self, query: str = "", label_ids: Collection[str] = ()) -> list[str]:
        """The ids of all messages with these labels that match the query, in the provider's own syntax."""
        ...

    async def modify(self, provider_message_id: str, add: Collection[str] = (), remove: Collection[str] = ()) -> Placed:
        """Add and remove labels."""
        ...

    async def trash(self, provider_message_id: str) -> Placed:
        """Move it to the trash."""
        ...

    async def untrash(self, provider_message_id: str) -> Placed:
        """Take it out of the trash, without putting it anywhere else."""
        ...

    async def delete(self, provider_message_id: str) -> None:
        """Delete it for good; this cannot be undone."""
        ...

    async def labels(self) -> Sequence[MailboxLabel]:
        """All labels of the mailbox; never empty."""
        ...

    async def create_label(self, name: str) -> str:
        """Create a label and return its id; also if another process has just created it."""
        ...

    async def label_id(self, name: str, create: bool = True) -> str:
        """The id of the label of this name, created if missing and `create` allows it."""
        ...

    async def display_name(self, address: str) -> str:
        """The user's display name for this address; empty if the mailbox does not say."""
        ...


MailboxUnder = Callable[[Permit], Awaitable[Mailbox]]
"""Opens the mailbox of the permit's account, for changes under the permit."""

MailboxOf = Callable[[UUID], Awaitable[Mailbox]]
"""Opens the mailbox of an account, for reading."""


def job_error_of(error: MailboxError, context: str = "", account_id: UUID | None = None) -> Fatal | Retryable | Parked:
    """How a job ends after `error`. If it needs a person, the job is parked under the key of its account, if known."""
    message = f"{context}: {error}" if context else str(error)
    match error:
        case NotSent():
            return Parked(BUSY, message, BUSY_PAUSE)
        case NeedsRepair() if account_id is not None:
            return Parked(parking_key(account_id), message, REPAIR_PAUSE)
        case NeedsPerson() if account_id is not None:
            return Parked(parking_key(account_id), message)
        case MailboxLater():
            return Retryable(message, after=error.retry_after)
        case NeedsPerson():
            return Retryable(message)
        case _:
            return Fatal(message)
