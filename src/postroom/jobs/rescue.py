"""Returns the jobs of dead workers to the queue."""

import structlog

from postroom.store.engine import clock_jumps
from postroom.store.engine.database import Database
from postroom.store.jobs import jobs as store
from postroom.system.wall_clock import Clock, wall_clock

log = structlog.get_logger()


class Rescuer:
    """Rescues the jobs under expired leases."""

    def __init__(self, database: Database, clock: Clock = wall_clock) -> None:
        self._database = database
        self._clock = clock

    async def tick(self) -> store.Rescue:
        """Make one pass, with one transaction for each dead worker, so that none grows without bound."""
        if ahead := await self._database.run(clock_jumps.shorten_worker_leases(self._clock())):
            log.warning("jobs.leases_from_the_future", workers=ahead)
        total = store.Rescue(0, 0, 0)
        while (rescue := await self._database.run(store.rescue(self._clock()))).workers:
            total = store.Rescue(total.workers + 1, total.requeued + rescue.requeued, total.ended + rescue.ended)
        if total.workers:
            log.warning("jobs.rescued", workers=total.workers, requeued=total.requeued, ended=total.ended)
        return total
