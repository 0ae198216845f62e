"""How mail leaves a mailbox: a draft is made, its id is kept, the draft is sent; and the mailbox is asked what became
of it. Our mail is known by its mark, a header that stays with it, since the Message-ID and the message's id change.
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
    """A mail of ours in the mailbox's sent mail. `answered` is whom it answered, if it is an automatic reply."""

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
    """The way out of one mailbox. Whatever it raises but `NotInMailbox` says nothing of what was done."""

    async def create_draft(self, mail: bytes, thread_id: str | None) -> DraftKept: ...

    async def drafts_of(self, mark: UUID) -> list[DraftKept]:
        """The drafts that carry the mark."""
        ...

    async def has_draft(self, draft_id: str) -> bool: ...

    async def send_draft(self, draft_id: str) -> str | None:
        """The id of the sent message; None when the draft is not there."""
        ...

    async def delete_draft(self, draft_id: str) -> None:
        """One that is gone already is as good as deleted."""
        ...

    async def find_sent(self, mark: UUID, threads: Sequence[str], since: datetime) -> str | None:
        """The id of the sent message that carries the mark: in one of these conversations, or elsewhere since then."""
        ...


class SentMailbox(Protocol):
    """What a mailbox tells of our mail in it, completely or not at all."""

    async def newest_sent(self) -> list[SentMail]:
        """Our mail among the newest of what was sent."""
        ...

    async def sent_since(self, since: datetime) -> list[SentMail]:
        """All of our mail that was sent since then, in the trash too."""
        ...

    async def marked_drafts(self) -> list[MarkedDraft]:
        """All of our mail that is still a draft."""
        ...


CarrierUnder = Callable[[Permit], Awaitable[Carrier]]
"""The way out of the mailbox of the permit's account."""

SentMailboxOf = Callable[[UUID], Awaitable[SentMailbox]]
"""The sent mail of an account."""
