"""The rules as they stand, compiled once and used until one of them changes."""

from postroom.core.rulebook import Rulebook
from postroom.store import rules
from postroom.store.database import Database


class Rulebooks:
    """Each use comes with the mark of the rules as just read: a rule counts from the moment it is written."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._mark: object = None
        self._book = Rulebook([])

    async def current(self, mark: tuple[object, ...]) -> Rulebook:
        if mark != self._mark:
            self._book = Rulebook(await self._database.run(rules.enabled_rules()))
            self._mark = mark
        return self._book
