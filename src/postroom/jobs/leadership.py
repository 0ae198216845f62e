"""Leader election: one process at a time runs the scheduler, the rescuer and the pruner.

Leadership is a lease. A leader that dies is replaced when its lease expires; one that stops resigns, so that the next
can begin at once. If two processes believe for a moment that they lead, nothing happens twice: every pass may run
concurrently with another.

Intervals are measured by a clock that never jumps. The wall clock may jump: when the leader sees it set back, and when
a term begins, it corrects the times that were stored while the clock was ahead.
"""

import asyncio
import contextlib
from datetime import datetime, timedelta
from random import Random
from uuid import uuid4

import structlog

from postroom.core.errors import StoreError
from postroom.jobs.counting import JobCounter
from postroom.jobs.prune import Pruner
from postroom.jobs.rescue import Rescuer
from postroom.jobs.schedule import Scheduler
from postroom.jobs.worker import holder_name
from postroom.store import leaders
from postroom.store.engine import clock_jumps
from postroom.store.engine.clock import Clock, wall_clock
from postroom.store.engine.database import Database
from postroom.store.engine.listeners import signalled
from postroom.system.boot_clock import BootClock, since_boot

log = structlog.get_logger()

NAME = "jobs"
LEASE = timedelta(seconds=15)
RESCUE_EVERY = timedelta(seconds=5)
PRUNE_EVERY = timedelta(seconds=60)
COUNT_EVERY = timedelta(seconds=10)
SHORTEST_PAUSE_S = 0.001


class Leadership:
    """Compete for the lease, and run the leader's services while holding it."""

    def __init__(
        self,
        database: Database,
        scheduler: Scheduler,
        rescuer: Rescuer,
        pruner: Pruner,
        lease: timedelta = LEASE,
        poll: timedelta = timedelta(seconds=1),
        clock: Clock = wall_clock,
        *,
        longest: clock_jumps.Longest | None = None,
        boot: BootClock = since_boot,
        counter: JobCounter | None = None,
    ) -> None:
        self._database = database
        self._scheduler = scheduler
        self._rescuer = rescuer
        self._pruner = pruner
        self._counter = counter
        self._lease = lease
        self._poll = poll
        self._clock = clock
        self._longest = longest or clock_jumps.Longest()
        self._boot = boot
        self._ahead_of_boot = self._offset()
        self._holder = f"{holder_name()}:{uuid4().hex[:8]}"
        self._rng = Random()  # noqa: S311 - jitter, not a secret
        self._wake = asyncio.Event()
        self._stopping = asyncio.Event()
        self.leads = False

    def stop(self) -> None:
        self._stopping.set()
        self._wake.set()

    async def run(self) -> None:
        """Run until stopped. Survives the database going away."""
        subscription = self._database.subscribe("scheduler", lambda _message: self._wake.set())
        try:
            while not self._stopping.is_set():
                try:
                    await self._term()
                except StoreError as error:
                    log.warning("leader.interrupted", error=type(error).__name__)
                self.leads = False
                await self._pause(self._lease.total_seconds() / 3)
        finally:
            subscription.close()
            await self._resign()

    async def _term(self) -> None:
        """Lead for as long as the lease can be renewed."""
        renew_at = rescue_at = prune_at = count_at = self._boot()
        was_set_back = True
        while not self._stopping.is_set():
            now = self._boot()
            was_set_back = self._clock_was_set_back() or was_set_back
            if now >= renew_at:
                if not await self._renew(self._clock()):
                    return
                renew_at = now + self._lease.total_seconds() / 3
            if now >= rescue_at:
                await self._rescuer.tick()
                rescue_at = now + min(RESCUE_EVERY, self._lease).total_seconds()
            if now >= prune_at:
                await self._pruner.tick()
                await self._database.run(clock_jumps.shorten_other_leases(self._longest, self._clock()))
                prune_at = now + PRUNE_EVERY.total_seconds()
            if self._counter is not None and now >= count_at:
                is_behind = await self._counter.tick()
                count_at = now + (0 if is_behind else COUNT_EVERY.total_seconds())
            if was_set_back:
                await self._correct_future_times()
                was_set_back = False
            due = await self._scheduler.tick()
            await self._pause(self._until(due, renew_at, rescue_at))

    def _offset(self) -> float:
        return self._clock().timestamp() - self._boot()

    def _clock_was_set_back(self) -> bool:
        """Whether the wall clock was set back since the last check; running slow does not count."""
        before, self._ahead_of_boot = self._ahead_of_boot, self._offset()
        return self._ahead_of_boot < before - clock_jumps.SLACK.total_seconds()

    async def _correct_future_times(self) -> None:
        """Correct leases and waits that were stored while a clock was ahead, on this machine or another."""
        now = self._clock()
        cut = await self._database.run(clock_jumps.shorten_other_leases(self._longest, now))
        ended = await self._database.run(clock_jumps.end_waits_ahead(now))
        if cut or ended:
            log.warning("leader.clock_was_ahead", leases_cut=cut, waits_ended=ended)

    async def _renew(self, now: datetime) -> bool:
        leads = await self._database.run(leaders.lead(NAME, self._holder, now, now + self._lease))
        if leads and not self.leads:
            log.info("leader.elected", holder=self._holder)
            await self._scheduler.begin()
        self.leads = leads
        return leads

    def _until(self, due: datetime | None, *others: float) -> float:
        """Seconds until there is something to do; at most the poll interval, in case a signal was missed."""
        now = self._boot()
        waits = [self._poll.total_seconds(), *(other - now for other in others)]
        if due is not None:
            waits.append((due - self._clock()).total_seconds())
        return max(SHORTEST_PAUSE_S, min(waits))

    async def _pause(self, seconds: float) -> None:
        self._wake.clear()
        if self._stopping.is_set():
            return
        await signalled(self._wake, seconds * self._rng.uniform(0.9, 1.0))

    async def _resign(self) -> None:
        with contextlib.suppress(StoreError):
            await self._database.run(leaders.resign(NAME, self._holder))
