"""Returns to the queue what dead workers held."""

import structlog

from postroom.store import jobs as store
from postroom.store.clock import Clock, wall_clock
from postroom.store.database import Database

log = structlog.get_logger()


class Rescuer:
    """One pass over the leases that have run out."""

    def __init__(self, database: Database, clock: Clock = wall_clock) -> None:
        self._database = database
        self._clock = clock

    async def tick(self) -> store.Rescue:
        rescue = await self._database.run(store.rescue(self._clock()))
        if rescue.workers:
            log.warning("jobs.rescued", workers=rescue.workers, requeued=rescue.requeued, ended=rescue.ended)
        return rescue
