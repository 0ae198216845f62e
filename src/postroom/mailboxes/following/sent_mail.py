"""Reads all of the sent mail, once: newest first, as bulk beside live mail, a few headers of each message.

Everybody the user has ever written to is a known contact, and every message that the user wrote may get a reply; mail
that a program sent is left out. The position is stored with the index after every batch, so that a restart continues
there. Mail sent meanwhile is found by following the history; once the whole folder was read, it is not read again.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Protocol, runtime_checkable

import structlog

from postroom.core.errors import MailboxError, NotInMailbox, PostroomError
from postroom.core.mail.auto_reply import AUTOMATIC_HEADERS
from postroom.mailboxes.following.correspondents import Correspondents
from postroom.mailboxes.following.dates import MessageDates
from postroom.mailboxes.following.knowledge import SentIds
from postroom.mailboxes.following.message_reader import NOT_ITS_OWN
from postroom.mailboxes.following.source import CHUNK, MailSource
from postroom.sources.checkpoint import ListPosition
from postroom.sources.runtime import ConnectorHealth

log = structlog.get_logger()

# Read before the first look-back, so that it knows whom the user wrote to recently: at most two minutes of quota.
FIRST = 500
PAGE = 500
AFTER_TROUBLE_S = 300.0
HEADERS = ("Message-ID", "To", "Cc", "Bcc", *AUTOMATIC_HEADERS)


@runtime_checkable
class FillableIndex(SentIds, Protocol):
    """An index of sent mail that stores how much of the folder was read."""

    @property
    def is_filled(self) -> bool: ...

    def mark_filled(self) -> None: ...

    @property
    def read_count(self) -> int: ...

    @property
    def passed(self) -> ListPosition | None: ...

    def keep_place(self, passed: ListPosition, read_count: int) -> None: ...

    def close(self) -> None:
        """Close it until it is used again."""


class SentMail:
    """The sent folder of one mailbox, read once. Concurrent callers share what was read so far."""

    def __init__(self, source: MailSource, index: SentIds, people: Correspondents, health: ConnectorHealth) -> None:
        self._source = source.for_use("bulk")
        self._index = index if isinstance(index, FillableIndex) else None
        self._people = people
        self._health = health
        self._chunks: AsyncGenerator[list[str]] | None = None
        self._one_at_a_time = asyncio.Lock()
        self._update_counters()

    async def keep_reading(self) -> None:
        """Read until all is read, which is recorded. Errors only delay it: live mail continues meanwhile."""
        while self._index is not None and not self._index.is_filled:
            try:
                await self.read()
            except PostroomError as error:
                log.warning("connector.sent_mail_waits", error=type(error).__name__)
                await asyncio.sleep(AFTER_TROUBLE_S)

    async def read(self, most: int | None = None) -> None:
        """Read on until this many were read in total, or until there are no more."""
        while not self.has_read(sys.maxsize if most is None else most):
            await self.read_some(sys.maxsize if most is None else most)

    def has_read(self, count: int) -> bool:
        """Whether this many were read in total, or there are no more."""
        index = self._index
        return index is None or index.is_filled or index.read_count >= count

    async def read_some(self, most: int) -> None:
        """Read a part of them, unless this many were read in total."""
        if self._index is not None and not self.has_read(most):
            async with self._one_at_a_time:
                await self._read_chunk(self._index)

    def rest(self) -> None:
        """Close the index until it is needed again."""
        if self._index is not None:
            self._index.close()

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
        self._update_counters()

    async def _take(self, index: FillableIndex, ids: Sequence[str]) -> None:
        outcomes = await self._source.get_messages(ids, "metadata", HEADERS)
        found = [each for each in outcomes if not isinstance(each, MailboxError)]
        await self._people.learn(found, only_new=True)
        for error in (each for each in outcomes if isinstance(each, MailboxError)):
            # One message that the mailbox never returns must not block all others.
            if isinstance(error, NOT_ITS_OWN) or (not found and not isinstance(error, NotInMailbox)):
                raise error
        if found:
            index.keep_place(ListPosition(found[-1].id, found[-1].internal_date), index.read_count + len(found))

    async def _ids(self, passed: ListPosition | None) -> AsyncGenerator[list[str]]:
        """The ids not read before, in batches. The message at the last position may be gone."""
        dates = MessageDates(self._source)
        async with aclosing(self._source.message_pages("", ("SENT",), PAGE)) as pages:
            async for page in pages:
                ids = [ref.id for ref in page.messages]
                if passed is not None:
                    ids, passed = await dates.below(passed, ids)
                for at in range(0, len(ids), CHUNK):
                    yield ids[at : at + CHUNK]

    def _update_counters(self) -> None:
        if self._index is not None:
            self._health.counters["sent.read"] = self._index.read_count
            self._health.counters["sent.complete"] = int(self._index.is_filled)
