"""Reads all of the sent mail, once: newest first, as bulk beside live mail, a few headers of each message.

Everybody the user has ever written to is somebody the user knows, and every message a reply can answer. How far it got
is kept with the index after every batch, so that a restart goes on there. Mail that is sent meanwhile is seen by
following; once the whole folder was read, it is not read again.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Protocol, runtime_checkable

import structlog

from postroom.connectors.checkpoint import ListPosition
from postroom.connectors.gmail.correspondents import Correspondents
from postroom.connectors.gmail.message_reader import NOT_ITS_OWN
from postroom.connectors.mail.dates import MessageDates
from postroom.connectors.mail.fetch import CHUNK
from postroom.connectors.mail.knowledge import SentIds
from postroom.connectors.runtime import ConnectorHealth
from postroom.core.errors import PostroomError
from postroom.gmail.client import GmailClient
from postroom.gmail.errors import NotThere
from postroom.gmail.resources import Message

log = structlog.get_logger()

# Read before the first look back, so that it knows whom the user wrote to lately: at most two minutes of quota.
FIRST = 500
PAGE = 500
AFTER_TROUBLE_S = 300.0
HEADERS = ("Message-ID", "To", "Cc", "Bcc")


@runtime_checkable
class FillableIndex(SentIds, Protocol):
    """An index of sent mail that remembers how much of the folder was read."""

    @property
    def is_filled(self) -> bool: ...

    def mark_filled(self) -> None: ...

    @property
    def read_count(self) -> int: ...

    @property
    def passed(self) -> ListPosition | None: ...

    def keep_place(self, passed: ListPosition, read_count: int) -> None: ...


class SentMail:
    """The sent folder of one mailbox, read once. Whoever asks for more of it shares what was read so far."""

    def __init__(self, client: GmailClient, index: SentIds, people: Correspondents, vitals: ConnectorHealth) -> None:
        self._client = client.for_use("bulk")
        self._index = index if isinstance(index, FillableIndex) else None
        self._people = people
        self._vitals = vitals
        self._chunks: AsyncGenerator[list[str]] | None = None
        self._one_at_a_time = asyncio.Lock()
        self._tell()

    async def keep_reading(self) -> None:
        """Until all of it was read, which is remembered. Trouble only makes it wait: live mail goes on meanwhile."""
        while self._index is not None and not self._index.is_filled:
            try:
                await self.read()
            except PostroomError as error:
                log.warning("connector.sent_mail_waits", error=type(error).__name__)
                await asyncio.sleep(AFTER_TROUBLE_S)

    async def read(self, most: int | None = None) -> None:
        """Reads on until so many were read in all, or until there are no more."""
        index = self._index
        while index is not None and not index.is_filled and (most is None or index.read_count < most):
            async with self._one_at_a_time:
                await self._read_chunk(index)

    async def _read_chunk(self, index: FillableIndex) -> None:
        try:
            if self._chunks is None:
                self._chunks = self._ids(index.passed)
            ids = await anext(self._chunks, None)
            if ids is None:
                index.mark_filled()
                log.info("connector.sent_mail_read", messages=index.read_count)
            else:
                await self._take(index, ids)
        except BaseException:
            self._chunks = None
            raise
        self._tell()

    async def _take(self, index: FillableIndex, ids: Sequence[str]) -> None:
        outcomes = await self._client.get_messages(ids, "metadata", HEADERS)
        found = [each for each in outcomes if isinstance(each, Message)]
        await self._people.learn(found, only_new=True)
        for outcome in outcomes:
            # One message that Gmail fails to give for ever must not hold up all others.
            if isinstance(outcome, NOT_ITS_OWN) or (not found and not isinstance(outcome, NotThere | Message)):
                raise outcome
        if found:
            index.keep_place(ListPosition(found[-1].id, found[-1].internal_date), index.read_count + len(found))

    async def _ids(self, passed: ListPosition | None) -> AsyncGenerator[list[str]]:
        """The ids of what was not read before, a batch at a time. The message at which it was left may be gone."""
        dates = MessageDates(self._client)
        async with aclosing(self._client.message_pages(label_ids=("SENT",), max_results=PAGE)) as pages:
            async for page in pages:
                ids = [ref.id for ref in page.messages]
                if passed is not None:
                    ids, passed = await dates.below(passed, ids)
                for at in range(0, len(ids), CHUNK):
                    yield ids[at : at + CHUNK]

    def _tell(self) -> None:
        if self._index is not None:
            self._vitals.counters["sent.read"] = self._index.read_count
            self._vitals.counters["sent.complete"] = int(self._index.is_filled)
