"""Ends actions whose job has ended without them, so that no action waits for ever."""

import asyncio
from datetime import timedelta

import structlog

from postroom.core.errors import StoreError
from postroom.store.actions import end_orphans
from postroom.store.clock import Clock, wall_clock
from postroom.store.database import Database

log = structlog.get_logger()

EVERY = timedelta(seconds=5)


async def end_orphans_forever(database: Database, every: timedelta = EVERY, clock: Clock = wall_clock) -> None:
    """Until canceled. Any number of processes may do this at once."""
    while True:
        try:
            ended = await database.run(end_orphans(clock()))
        except StoreError as error:
            log.warning("actions.orphans_not_checked", error=type(error).__name__)
        else:
            if ended:
                log.warning("actions.orphans_ended", count=ended)
        await asyncio.sleep(every.total_seconds())
