"""Marks calls of a model as failed whose process has ended during them, so that none seems to run for ever."""

import asyncio
from datetime import timedelta

import structlog

from postroom.core.errors import StoreError
from postroom.store.clock import Clock, wall_clock
from postroom.store.database import Database
from postroom.store.model_calls import fail_left_calls

log = structlog.get_logger()

EVERY = timedelta(minutes=5)
# More than any call may take: its time-out is at most ten minutes.
LEFT_AFTER = timedelta(minutes=15)


async def fail_left_calls_forever(database: Database, every: timedelta = EVERY, clock: Clock = wall_clock) -> None:
    """Until canceled. Any number of processes may do this at once."""
    while True:
        now = clock()
        try:
            failed = await database.run(fail_left_calls(now - LEFT_AFTER, now))
        except StoreError as error:
            log.warning("model.left_calls_not_checked", error=type(error).__name__)
        else:
            if failed:
                log.warning("model.left_calls_failed", count=failed)
        await asyncio.sleep(every.total_seconds())
