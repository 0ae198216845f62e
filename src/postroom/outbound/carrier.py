"""How mail leaves: a draft is made, its id is kept, the draft is sent; and the mailbox is asked what became of it.

A draft that is there was not sent. One that is gone was sent, or deleted by somebody: only the mailbox's sent mail
tells. Our mail is known by its mark, a header that stays with it, since the Message-ID and the message's id change.
Lists by label show a message at once, where a search would find it a little later; so nothing here searches.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol, TypeVar
from uuid import UUID

from postroom.gmail import calls
from postroom.gmail.client import GmailClient
from postroom.gmail.errors import DraftNotFound, GmailError, NotThere, ThreadNotFound
from postroom.gmail.resources import Message
from postroom.outbound.mime import MARK

T = TypeVar("T")

SENT = "SENT"
PAGE = 50
# How far back drafts and sent mail are looked through.
MOST_LOOKED_AT = 1_000
# Clocks differ; what was sent is not missed for that.
EARLIER = timedelta(hours=1)


class DraftKept(NamedTuple):
    """A draft in the mailbox, and the message in it."""

    id: str
    message_id: str


class Carrier(Protocol):
    """The way out of one mailbox. Whatever it raises but `NotThere` says nothing of what was done."""

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

    async def find_sent(self, mark: UUID, thread_id: str | None, since: datetime) -> str | None:
        """The id of the sent message that carries the mark."""
        ...


class GmailCarrier:
    """The way out of a mailbox at Gmail."""

    def __init__(self, client: GmailClient) -> None:
        self._client = client

    async def create_draft(self, mail: bytes, thread_id: str | None) -> DraftKept:
        made = await self._client.create_draft(mail, thread_id)
        return DraftKept(made.id, made.message.id)

    async def drafts_of(self, mark: UUID) -> list[DraftKept]:
        found: list[DraftKept] = []
        looked_at = 0
        async for page in self._client.draft_pages(max_results=PAGE):
            drafts = await self._client.batch([calls.get_draft(each.id, "metadata") for each in page.drafts])
            found += [DraftKept(each.id, each.message.id) for each in _there(drafts) if _carries(each.message, mark)]
            looked_at += len(page.drafts)
            if looked_at >= MOST_LOOKED_AT:
                break
        return found

    async def has_draft(self, draft_id: str) -> bool:
        try:
            await self._client.get_draft(draft_id, "minimal")
        except DraftNotFound:
            return False
        return True

    async def send_draft(self, draft_id: str) -> str | None:
        try:
            return (await self._client.send_draft(draft_id)).id
        except DraftNotFound:
            return None

    async def delete_draft(self, draft_id: str) -> None:
        try:
            await self._client.delete_draft(draft_id)
        except DraftNotFound:
            return

    async def find_sent(self, mark: UUID, thread_id: str | None, since: datetime) -> str | None:
        return await self._in_thread(mark, thread_id) or await self._among_sent(mark, since - EARLIER)

    async def _in_thread(self, mark: UUID, thread_id: str | None) -> str | None:
        if thread_id is None:
            return None
        try:
            thread = await self._client.get_thread(thread_id, "metadata", [MARK])
        except ThreadNotFound:
            return None
        return _sent_with(mark, thread.messages)

    async def _among_sent(self, mark: UUID, since: datetime) -> str | None:
        """The newest first, as far back as it can have been."""
        looked_at = 0
        pages = self._client.message_pages(label_ids=[SENT], max_results=PAGE, include_spam_trash=True)
        async for page in pages:
            messages = await self._client.get_messages([each.id for each in page.messages], "metadata", [MARK])
            found = list(_there(messages))
            if (sent := _sent_with(mark, found)) is not None:
                return sent
            looked_at += len(page.messages)
            if looked_at >= MOST_LOOKED_AT or any(each.internal_date < since for each in found):
                break
        return None


def _there(outcomes: Sequence[T | GmailError]) -> Iterable[T]:
    """Without those that went meanwhile. Any other error is raised: half a look must not pass for a whole one."""
    for outcome in outcomes:
        if isinstance(outcome, NotThere):
            continue
        if isinstance(outcome, GmailError):
            raise outcome
        yield outcome


def _carries(message: Message, mark: UUID) -> bool:
    return (message.header(MARK) or "").strip().lower() == str(mark)


def _sent_with(mark: UUID, messages: Iterable[Message]) -> str | None:
    return next((each.id for each in messages if SENT in each.label_ids and _carries(each, mark)), None)
