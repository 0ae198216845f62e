"""Sending mail from a mailbox: create a draft, store its id, send the draft; afterwards the mailbox knows the outcome.
Our mail is recognised by its mark, a header that stays with it, since the Message-ID and the message's id change.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol
from uuid import UUID

from postroom.core.actions.permits import Permit

MARK = "X-Postroom-Delivery"
SOURCE = "X-Postroom-Source"


class DraftKept(NamedTuple):
    """A draft in the mailbox, and the message in it."""

    id: str
    message_id: str


class SentMail(NamedTuple):
    """A mail of ours in the mailbox's sent mail. `answered` is the recipient, if it is an automatic reply."""

    id: str
    delivery_id: UUID
    source_key: str | None
    sent_at: datetime
    answered: str | None = None


class MarkedDraft(NamedTuple):
    """A mail of ours that is still a draft, and so was not sent."""

    id: str
    message_id: str
    delivery_id: UUID


class Carrier(Protocol):
    """Sends mail from one mailbox. After any error except `NotInMailbox`, the outcome is unknown."""

    async def create_draft(self, mail: bytes, thread_id: str | None) -> DraftKept: ...

    async def drafts_of(self, mark: UUID) -> list[DraftKept]:
        """The drafts with the mark."""
        ...

    async def has_draft(self, draft_id: str) -> bool: ...

    async def send_draft(self, draft_id: str) -> str | None:
        """Send the draft; return the id of the sent message, None if the draft does not exist."""
        ...

    async def delete_draft(self, draft_id: str) -> None:
        """Delete the draft; one that is already gone counts as deleted."""
        ...

    async def find_sent(self, mark: UUID, threads: Sequence[str], since: datetime) -> str | None:
        """The id of the sent message with the mark: in one of these conversations, or anywhere since then."""
        ...


class SentMailbox(Protocol):
    """Our mail in the mailbox's sent mail and drafts. Results are complete, or an error is raised."""

    async def newest_sent(self) -> list[SentMail]:
        """Our mail among the most recently sent."""
        ...

    async def sent_since(self, since: datetime) -> list[SentMail]:
        """All of our mail that was sent since then, including the trash."""
        ...

    async def marked_drafts(self) -> list[MarkedDraft]:
        """All of our mail that is still a draft."""
        ...


CarrierUnder = Callable[[Permit], Awaitable[Carrier]]
"""Opens a carrier for the mailbox of the permit's account."""

SentMailboxOf = Callable[[UUID], Awaitable[SentMailbox]]
"""Opens the sent mail of an account."""
