"""Leader election: one process at a time runs the scheduler, the rescuer and the pruner.

Leadership is a lease. A leader that dies is replaced when its lease expires; one that stops resigns, so that the next
can begin at once. If two processes believe for a moment that they lead, nothing happens twice: every pass may run
concurrently with another.

Intervals are measured by a clock that never jumps. The wall clock may jump: when the leader sees it set back, and when
a term begins, it corrects the times that were stored while the clock was ahead, and once more a minute later.
"""

import asyncio
import contextlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from uuid import uuid4

import structlog

from postroom.core.errors import StoreError
from postroom.jobs.clock_watch import ClockWatch
from postroom.jobs.counting import JobCounter
from postroom.jobs.prune import Pruner
from postroom.jobs.rescue import Rescuer
from postroom.jobs.schedule import Scheduler
from postroom.jobs.worker import holder_name
from postroom.store.engine import clock_jumps
from postroom.store.engine.database import Database
from postroom.store.engine.listeners import signalled
from postroom.store.jobs import jobs as store
from postroom.store.jobs import leaders
from postroom.system.boot_clock import BootClock, since_boot
from postroom.system.wall_clock import Clock, wall_clock

log = structlog.get_logger()

NAME = "jobs"
LEASE = timedelta(seconds=15)
RESCUE_EVERY = timedelta(seconds=10)
PRUNE_EVERY = timedelta(seconds=60)
COUNT_EVERY = timedelta(minutes=1)
SHORTEST_PAUSE_S = 0.001


@dataclass(slots=True)
class _Due:
    """When each of the leader's duties is next due, by the clock that never jumps."""

    renew_at: float
    rescue_at: float
    prune_at: float
    count_at: float
    schedule_at: float


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
        self._watch = ClockWatch(clock, boot)
        self._due = _Due(*(boot(),) * 5)
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
            await self.compare_with_last_leader()
            while not self._stopping.is_set():
                try:
                    await self._term()
                except StoreError as error:
                    log.warning("leader.interrupted", error=type(error).__name__)
                self.leads = False
                self._wake.clear()
                await self._pause(self._lease.total_seconds() / 3)
        finally:
            subscription.close()
            await self._resign()

    async def _term(self) -> None:
        """Lead for as long as the lease can be renewed."""
        self.begin()
        while not self._stopping.is_set():
            pause_s = await self.tick()
            if pause_s is None:
                return
            await self._pause(pause_s)

    def begin(self) -> None:
        """Begin a term: everything is due."""
        self._due = _Due(*(self._boot(),) * 5)
        self._watch.begin()

    async def tick(self) -> float | None:
        """Do all that is due; return how many seconds to wait for the next round, or None if another process leads."""
        now, due = self._boot(), self._due
        if self._watch.look():  # whoever sees it corrects: the leader may be dead, and nobody else knows by how much
            await self._correct_future_times()
            due.renew_at = now  # the lease tells the next leader by which clock we last wrote
        if now >= due.renew_at:
            if not await self._renew(self._clock()):
                return None
            due.renew_at = now + self._lease.total_seconds() / 2
        if now >= due.rescue_at:
            if await self._database.run(store.any_lease_over(self._clock())):
                await self._rescuer.tick()
            due.rescue_at = now + min(RESCUE_EVERY, self._lease).total_seconds()
        if now >= due.prune_at:
            await self._pruner.tick()
            await self._database.run(clock_jumps.shorten_other_leases(self._longest, self._clock()))
            due.prune_at = now + PRUNE_EVERY.total_seconds()
        if self._counter is not None and now >= due.count_at:
            is_behind = await self._counter.tick()
            due.count_at = now + (0 if is_behind else COUNT_EVERY.total_seconds())
        if now >= self._watch.due_at:
            await self._correct_future_times()
        if now >= due.schedule_at or self._wake.is_set() or self._watch.has_jumped:
            self._wake.clear()  # before the look: what is announced during it may be too late for it
            due.schedule_at = self._boot() + self._until(await self._scheduler.tick())
        others = (due.renew_at, due.rescue_at, due.schedule_at, self._watch.due_at)
        return max(SHORTEST_PAUSE_S, min(others) - self._boot())

    async def compare_with_last_leader(self) -> None:
        """Correct at once if the last leader's clock was ahead of ours: it may have been set back while no process ran.
        Later nobody could tell by how much, since its lease is cut. Doing so twice, or beside a leader, does no harm.
        """
        with contextlib.suppress(StoreError):
            last = await self._database.run(leaders.leader(NAME))
            ahead = timedelta(0) if last is None else last[1] - self._lease - self._clock()
            if ahead > clock_jumps.SLACK:
                self._watch.note(ahead)
                await self._correct_future_times()

    async def _correct_future_times(self) -> None:
        """Correct leases, waits and deadlines that were stored while a clock was ahead, on this machine or another."""
        now, back_by = self._clock(), self._watch.back_by
        cut = await self._database.run(clock_jumps.shorten_other_leases(self._longest, now))
        ended = await self._database.run(clock_jumps.end_waits_ahead(now, back_by))
        mails = await self._database.run(clock_jumps.release_mail_ahead(now, back_by))
        moved = await self._database.run(clock_jumps.move_deadlines_ahead(now, back_by))
        await self._scheduler.begin()
        self._watch.corrected()
        if cut or ended or mails or moved:
            log.warning("leader.clock_was_ahead", leases_cut=cut, waits_ended=ended, mails=mails, deadlines_moved=moved)

    async def _renew(self, now: datetime) -> bool:
        leads = await self._database.run(leaders.lead(NAME, self._holder, now, now + self._lease))
        if leads and not self.leads:
            log.info("leader.elected", holder=self._holder)
            await self._scheduler.begin()
        self.leads = leads
        return leads

    def _until(self, due: datetime | None) -> float:
        """Seconds until something is due; at most the poll interval, in case a signal was missed."""
        poll_s = self._poll.total_seconds()
        return poll_s if due is None else min(poll_s, (due - self._clock()).total_seconds())

    async def _pause(self, seconds: float) -> None:
        if self._stopping.is_set():
            return
        await signalled(self._wake, seconds * self._rng.uniform(0.9, 1.0))

    async def _resign(self) -> None:
        with contextlib.suppress(StoreError):
            await self._database.run(leaders.resign(NAME, self._holder))
