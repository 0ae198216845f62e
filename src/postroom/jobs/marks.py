"""Advances the low-water marks of the queue while jobs are claimed (PostgreSQL only; see store.job_marks)."""

from postroom.core.errors import StoreError
from postroom.store.engine.database import Database
from postroom.store.jobs.job_marks import Watch, advance, still_open, watch_inserts

EVERY = 5000


class MarkKeeper:
    """Advances the marks after every few thousand claims."""

    def __init__(self, database: Database, every: int = EVERY) -> None:
        self.claimed = 0
        self._database = database
        self._every = every
        self._watch: Watch | None = None

    @property
    def due(self) -> bool:
        return self.claimed >= self._every and self._database.dialect == "postgres"

    async def advance(self) -> None:
        """Move the marks up to the last settled seq, and watch for the next. A failure only costs speed."""
        self.claimed = 0
        try:
            if self._watch is not None and not await self._database.run(still_open(self._watch)):
                await self._database.run(advance(self._watch.bound))
                self._watch = None
            if self._watch is None:
                self._watch = await self._database.run(watch_inserts())
        except StoreError:
            self._watch = None
