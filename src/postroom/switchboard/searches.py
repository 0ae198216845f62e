"""Searches in stored mail, a few at a time: however many agents search, and for what, others can read."""

import asyncio

from postroom.core.errors import BadInput, TookTooLong
from postroom.core.mail.search import FIELD
from postroom.store.engine.database import Database, Transaction
from postroom.store.search import FoundPage

MOST_AT_ONCE = 2
MOST_WAITING = 20


class Searches:
    """Those that run, and those that wait for their turn."""

    def __init__(self, most_at_once: int = MOST_AT_ONCE, most_waiting: int = MOST_WAITING) -> None:
        self._places = asyncio.Semaphore(most_at_once)
        self._most_waiting = most_waiting
        self._waiting = 0
        self._running: set[asyncio.Task[FoundPage]] = set()

    async def run(self, database: Database, search: Transaction[FoundPage]) -> FoundPage:
        """Raises BadInput for a search that takes too long, or comes when too many wait."""
        await self._turn()
        running = asyncio.create_task(database.run(search), name="postroom-search")
        self._running.add(running)
        running.add_done_callback(self._ended)
        try:
            # Who asked may go away; the database is at it until its end, and so long the place is taken.
            return await asyncio.shield(running)
        except TookTooLong:
            remedy = "narrow the search: longer words, fewer beginnings, or after: and before:"
            raise BadInput(FIELD, "takes too long to answer", remedy) from None

    async def _turn(self) -> None:
        if self._waiting >= self._most_waiting:
            raise BadInput(FIELD, "comes while too many searches wait", "try again in a few seconds")
        self._waiting += 1
        try:
            await self._places.acquire()
        finally:
            self._waiting -= 1

    def _ended(self, running: asyncio.Task[FoundPage]) -> None:
        self._places.release()
        self._running.discard(running)
        if not running.cancelled():
            running.exception()  # whoever asked may be gone, and has not heard of it
