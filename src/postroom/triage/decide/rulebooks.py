"""The current rules, compiled once and reused until one of them changes."""

import asyncio

from postroom.core.rules.rulebook import Rulebook
from postroom.store.engine.database import Database
from postroom.store.rules import rules


class Rulebooks:
    """A cache of the compiled rules. Each use brings the version mark just read, so a new rule counts at once."""

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
        """Compile the rules, unless another task just did; in a thread, since thousands of rules take a while."""
        if mark != self._mark:
            found = await self._database.run(rules.enabled_rules())
            self._book = await asyncio.to_thread(Rulebook, found)
            self._mark = mark
