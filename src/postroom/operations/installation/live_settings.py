"""The settings in effect in this process, which are read again when somebody changes a stored one.

`current` is one frozen object, replaced as a whole. What was made of settings is made again by those that `keep_up`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import structlog

from postroom.core.errors import NothingHere, StoreError
from postroom.settings.reading import Settings
from postroom.settings.stored import with_stored
from postroom.store.engine.database import Database
from postroom.store.engine.listeners import signalled
from postroom.store.installation.stored_settings import CHANNEL, StoredSetting, stored_settings

log = structlog.get_logger()

LOOK_EVERY_S = 10.0
"""How long a change may go unnoticed if its announcement is lost."""
AT_MOST_EVERY_S = 0.5
"""On SQLite every write of another process is an announcement."""

Apply = Callable[[Settings], Awaitable[None]]


class LiveSettings:
    """One for a process. `start` are the settings that it was started with."""

    def __init__(self, start: Settings) -> None:
        self.start = start
        self.current = start
        self.stored: Mapping[str, StoredSetting] = {}
        self._applied: list[Apply] = []
        self._reading = asyncio.Lock()

    async def refresh(self, database: Database) -> Settings:
        """Read what is stored, and return the settings that are now in effect. Raises a StoreError."""
        async with self._reading:
            try:
                found = await database.run(stored_settings())
            except NothingHere:
                found = []
            self.stored = {each.name: each for each in found}
            changed = with_stored(self.start, {each.name: each.value for each in found})
            if changed != self.current:
                self.current = changed
                for apply in self._applied:
                    await apply(changed)
            return self.current

    async def keep_up(self, apply: Apply) -> None:
        """Call this now, and whenever other settings are in effect."""
        self._applied.append(apply)
        await apply(self.current)

    async def follow(self, database: Database) -> None:
        """Read again after every change, in whichever process it was made, until canceled."""
        changed = asyncio.Event()
        subscription = database.subscribe(CHANNEL, lambda _name: changed.set())
        try:
            while True:
                changed.clear()
                try:
                    await self.refresh(database)
                except StoreError as error:
                    log.warning("settings.not_read", error=type(error).__name__)
                await signalled(changed, LOOK_EVERY_S)
                await asyncio.sleep(AT_MOST_EVERY_S)
        finally:
            subscription.close()
