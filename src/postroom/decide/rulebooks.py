"""The rules as they stand, compiled once and used until one of them changes."""

import asyncio

from postroom.core.rules.rulebook import Rulebook
from postroom.store import rules
from postroom.store.engine.database import Database


class Rulebooks:
    """Each use comes with the mark of the rules as just read: a rule counts from the moment it is written."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._mark: object = None
        self._book = Rulebook([])
        self._renewing = asyncio.Lock()

    async def current(self, mark: tuple[object, ...]) -> Rulebook:
        if mark != self._mark:
            async with self._renewing:
                await self._renew(mark)
        return self._book

    async def _renew(self, mark: tuple[object, ...]) -> None:
        """Unless somebody else has meanwhile. Thousands of rules take a while: nobody else waits for that."""
        if mark != self._mark:
            found = await self._database.run(rules.enabled_rules())
            self._book = await asyncio.to_thread(Rulebook, found)
            self._mark = mark
