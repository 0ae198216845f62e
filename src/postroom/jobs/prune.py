"""Deletes jobs that ended long ago. How long a job is kept depends on how it ended."""

import time
from collections.abc import Mapping
from datetime import timedelta

from postroom.store.engine.database import Database
from postroom.store.jobs import jobs as store
from postroom.system.wall_clock import Clock, wall_clock

BATCH = 1000
LONGEST_PASS_S = 10.0
RECEIPTS_FOR = timedelta(hours=1)
KEEP: Mapping[str, timedelta] = {
    "completed": timedelta(days=7),
    "failed": timedelta(days=90),
    "canceled": timedelta(days=30),
}


class Pruner:
    """Deletes old jobs in small transactions, so that nothing else is blocked."""

    def __init__(self, database: Database, keep: Mapping[str, timedelta] = KEEP, clock: Clock = wall_clock) -> None:
        self._database = database
        self._keep = keep
        self._clock = clock

    async def tick(self) -> int:
        now, began = self._clock(), time.monotonic()
        pruned = 0
        for state, kept_for in self._keep.items():
            count = BATCH
            while count == BATCH and time.monotonic() - began < LONGEST_PASS_S:
                count = await self._database.run(store.prune(state, now - kept_for, BATCH))
                pruned += count
        await self._database.run(store.prune_receipts(now - RECEIPTS_FOR))
        return pruned
