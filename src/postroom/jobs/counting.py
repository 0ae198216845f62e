"""Counts the jobs that ended, by hour, for the pages."""

from datetime import timedelta

from postroom.store.engine.database import Database
from postroom.store.installation.rollups import hour_of
from postroom.store.jobs import job_figures
from postroom.system.wall_clock import Clock, wall_clock

# A transaction that ends jobs names its time before it commits; by then it has.
SETTLED_AFTER = timedelta(seconds=5)
# Where nothing was counted for long, a day at a time: the leader has other things to do in between.
SLICE = timedelta(days=1)
FIRST_SLICE_AGO = timedelta(days=7)
# Where nothing ends, nothing is written for this long.
IDLE_FOR = timedelta(minutes=1)


class JobCounter:
    """Adds what has ended since the last count. Called by the leader; two at once do no harm."""

    def __init__(self, database: Database, clock: Clock = wall_clock) -> None:
        self._database = database
        self._clock = clock

    async def tick(self) -> bool:
        """Count one slice. Return whether there is more to count at once."""
        until = self._clock() - SETTLED_AFTER
        since = await self._database.run(job_figures.counted_until())
        if since is None:
            since = hour_of(until - FIRST_SLICE_AGO)
            await self._database.run(job_figures.begin_counting(since))
        if since >= until:
            return False
        end = min(since + SLICE, until)
        found = await self._database.run(job_figures.ended_between(since, end))
        if not found and end - since < IDLE_FOR:
            return False
        return await self._database.run(job_figures.keep_counts(since, end, found)) and end < until
