"""Reads new mail in the order of its provisional tier, for a short while at a time.

A connector lists what is new, reads for some seconds, and lists again, until nothing waits. So a message that arrives
while thousands are being read is found within seconds, and goes ahead of them if it seems urgent. Urgent mail is read
at once, from the part of the quota that is kept for it, and so are a few others; many at the pace at which the quota
comes back.
"""

import asyncio
from collections.abc import Callable, Sequence

from postroom.mailboxes.following.message_reader import MessageReader
from postroom.mailboxes.following.reading_list import URGENT, NextMessages, ReadingList
from postroom.mailboxes.following.source import CHUNK, MailSource
from postroom.sources.runtime import ConnectorHealth

# More mail at once that seems urgent may be a flood under forged names. It goes first, but at the pace of other mail.
MOST_URGENT = 60


class OrderedReading:
    """Reads the messages of one list. `at_once` are read together; `before` is called with the ids of each part."""

    def __init__(
        self,
        waiting: ReadingList,
        reader: MessageReader,
        source: MailSource,
        health: ConnectorHealth,
        *,
        at_once: int = CHUNK,
        before: Callable[[Sequence[str]], None] = lambda _ids: None,
    ) -> None:
        self._waiting = waiting
        self._reader = reader
        self._live = source
        self._steady = source.for_use("steady")
        self._health = health
        self._at_once = at_once
        self._before = before

    async def read_for(self, seconds: float, *, only_urgent: bool = False) -> int:
        """Read for so long, or until nothing waits; return how many were new to the switchboard."""
        loop = asyncio.get_running_loop()
        end, fresh = loop.time() + seconds, 0
        only = URGENT if only_urgent else None
        while (picked := self._waiting.next(self._at_once, only)).ids:
            source = self._source_for(picked)
            if room := await source.room(len(picked.ids), end - loop.time()):
                picked = self._waiting.next(room, only) if room < len(picked.ids) else picked
                self._before(picked.ids)
                fresh += await self._reader.take(picked.ids, source)
                self._waiting.done(picked)
            if loop.time() >= end:
                break
        self._health.counters["to_read"] = len(self._waiting)
        return fresh

    def _source_for(self, picked: NextMessages) -> MailSource:
        """Few messages keep nobody waiting, whatever they are."""
        is_live = self._waiting.count(URGENT) <= MOST_URGENT if picked.is_urgent else len(self._waiting) <= CHUNK
        return self._live if is_live else self._steady
