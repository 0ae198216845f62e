"""Limits concurrent searches in stored mail, so that agents that search cannot block others that read."""

import asyncio

from postroom.core.errors import BadInput, TookTooLong
from postroom.core.mail.search import FIELD
from postroom.store.engine.database import Database, Transaction
from postroom.store.mail.search import FoundPage

MOST_AT_ONCE = 2
MOST_WAITING = 20


class SearchLimiter:
    """The searches that run, and those that wait."""

    def __init__(self, most_at_once: int = MOST_AT_ONCE, most_waiting: int = MOST_WAITING) -> None:
        self._slots = asyncio.Semaphore(most_at_once)
        self._most_waiting = most_waiting
        self._waiting = 0
        self._running: set[asyncio.Task[FoundPage]] = set()

    async def run(self, database: Database, search: Transaction[FoundPage]) -> FoundPage:
        """Run a search. Raises BadInput if it takes too long, or if too many searches wait."""
        await self._wait_for_slot()
        running = asyncio.create_task(database.run(search), name="postroom-search")
        self._running.add(running)
        running.add_done_callback(self._release)
        try:
            # The caller may go away; the database continues to the end, and until then the slot is taken.
            return await asyncio.shield(running)
        except TookTooLong:
            remedy = "narrow the search: longer words, fewer beginnings, or after: and before:"
            raise BadInput(FIELD, "takes too long to answer", remedy) from None

    async def _wait_for_slot(self) -> None:
        if self._waiting >= self._most_waiting:
            raise BadInput(FIELD, "comes while too many searches wait", "try again in a few seconds")
        self._waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self._waiting -= 1

    def _release(self, running: asyncio.Task[FoundPage]) -> None:
        self._slots.release()
        self._running.discard(running)
        if not running.cancelled():
            running.exception()  # marks it as retrieved: the caller may be gone
