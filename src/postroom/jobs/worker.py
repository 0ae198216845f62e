"""The worker: claims jobs ahead, runs a bounded number at a time, and writes their ends in groups.

    claimer ──► buffer ──► runners (at most `concurrency`) ──► finisher
       ▲                                                          │
       └── a signal, a more urgent arrival, or the poll           └── one transaction for all that ended meanwhile

One lease covers everything the process holds. It is renewed while the process lives; when it is lost (the process was
stopped for too long, or the database was away), everything in hand is dropped, for someone else has it by now.

Nothing is logged per job that succeeds: at tens of thousands a second, a line each would be most of the work.
"""

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any

import structlog

from postroom.core.actions.permits import HeldLease
from postroom.core.errors import LeaseLost, Retryable, StoreError
from postroom.core.jobs.job import Claim, Job
from postroom.core.jobs.types import Catalogue
from postroom.jobs.buffer import Buffer
from postroom.jobs.failure import ending_of
from postroom.jobs.marks import MarkKeeper
from postroom.jobs.run import Handler, JobRun
from postroom.store import jobs as store
from postroom.store.engine.clock import Clock, wall_clock
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.listeners import signalled
from postroom.system.boot_clock import BootClock, since_boot
from postroom.telemetry.tracing import span

log = structlog.get_logger()

LARGEST_BUFFER = 2000
LARGEST_CLAIM = 1000
JOBS_PER_TURN = 100
PAUSE_AFTER_STORE_ERROR_S = 0.5
LONGEST_WAIT_S = 1.0
# How much of a lease may pass before requests under it leave no more: they are on their way for a while.
USABLE_PART = 0.9


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How one worker process works."""

    concurrency: int = 32
    prefetch: timedelta = timedelta(milliseconds=50)
    lease: timedelta = timedelta(seconds=60)
    heartbeat: timedelta = timedelta(seconds=20)
    drain: timedelta = timedelta(seconds=30)
    poll: timedelta = timedelta(seconds=1)


@dataclass(slots=True)
class Counts:
    """What this worker has done, as plain numbers."""

    claimed: int = 0
    completed: int = 0
    failed: int = 0
    retried: int = 0
    canceled: int = 0
    parked: int = 0
    stale: int = 0


@dataclass(slots=True)
class _Lease:
    """`held` is what requests to mailboxes are judged by: it ends a little before the lease does, for their way takes
    time. `lost_at` is when it is over for sure, in seconds since boot, counted from before the last renewal."""

    token: Any
    until: datetime
    held: HeldLease
    lost_at: float
    running: dict[int, JobRun] = field(default_factory=dict[int, JobRun])

    def renewed(self, until: datetime, started: float, seconds: float) -> None:
        """Renewed by a transaction that began then."""
        self.until = until
        self.lost_at = started + seconds
        self.held.deadline = started + seconds * USABLE_PART


class Worker:
    """Runs jobs until it is stopped."""

    def __init__(
        self,
        database: Database,
        catalogue: Catalogue,
        handlers: Mapping[str, Handler],
        options: WorkerOptions | None = None,
        clock: Clock = wall_clock,
        rng: Random | None = None,
        boot: BootClock = since_boot,
    ) -> None:
        self.options = options or WorkerOptions()
        self.counts = Counts()
        self._database = database
        self._catalogue = catalogue
        self._handlers = handlers
        self._clock = clock
        self._rng = rng or Random()  # noqa: S311 - jitter, not a secret
        self._buffer = Buffer(LARGEST_BUFFER, self.options.prefetch.total_seconds())
        self._marks = MarkKeeper(database)
        self._lease: _Lease | None = None
        self._runners: set[asyncio.Task[None]] = set()
        self._ended: list[Job] = []
        self._finishing: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._heard: int | None = None
        self._doubtful = False
        self._in_flight: list[Job] = []
        self._stopping = asyncio.Event()
        self._monotonic = time.monotonic
        self._boot = boot

    def stop(self) -> None:
        """Claims nothing more and ends when what runs has ended, or after the drain time."""
        self._stopping.set()
        self._wake.set()

    async def run(self) -> None:
        """Works until `stop`. Survives the database going away for any length of time."""
        subscription = self._database.subscribe(store.CHANNEL, self._hear)
        beating = asyncio.create_task(self._beat_forever(), name="postroom-heartbeat")
        log.info("worker.started", concurrency=self.options.concurrency, database=self._database.dialect)
        try:
            await self._claim_until_stopped()
            await self._drain()
        finally:
            self._stopping.set()
            self._buffer.drain()  # what was not given back, closing the lease returns
            subscription.close()
            await _end(beating)
            for runner in self._runners:
                runner.cancel()
            await asyncio.gather(*self._runners, return_exceptions=True)
            if self._finishing is not None:
                await asyncio.gather(self._finishing, return_exceptions=True)
            await self._leave()
            log.info("worker.stopped", completed=self.counts.completed, failed=self.counts.failed)

    # claiming

    def _hear(self, message: str) -> None:
        """Remembers the most urgent arrival since the last claim began."""
        if message:
            self._heard = max(int(message), self._heard if self._heard is not None else int(message))
        self._wake.set()

    async def _claim_until_stopped(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            await self._give_back_what_waits_too_long()
            wanted = self._wanted()
            if not wanted or await self._try_to_claim(wanted) < wanted:
                await signalled(self._wake, self.options.poll.total_seconds() * self._rng.uniform(0.8, 1.2))

    async def _try_to_claim(self, wanted: int) -> int:
        try:
            if self._doubtful:
                await self._disown_unknown()
            return await self._claim(wanted)
        except StoreError as error:
            log.warning("worker.claim_failed", error=type(error).__name__)
            self._doubtful = True
            return 0

    async def _disown_unknown(self) -> None:
        """A claim whose outcome we never learned may have given us jobs we do not know of: they go back."""
        if self._lease is not None:
            known = [*self._lease.running, *self._buffer.seqs(), *(job.seq for job in (*self._ended, *self._in_flight))]
            await self._database.run(store.disown(self._lease.token, known, self._clock()))
        self._doubtful = False

    def _wanted(self) -> int:
        if len(self._ended) > LARGEST_BUFFER:
            return 0  # the database cannot keep up with the ends; do not pile up more
        highest = self._buffer.highest_priority
        if self._heard is not None and highest is not None and self._heard > highest:
            return max(0, min(self.options.concurrency, LARGEST_BUFFER - len(self._buffer)))
        return min(self._buffer.wants(self._free_places, self._monotonic()), LARGEST_CLAIM)

    @property
    def _free_places(self) -> int:
        return self.options.concurrency - (len(self._lease.running) if self._lease is not None else 0)

    async def _give_back_what_waits_too_long(self) -> None:
        """When every place is taken by slow jobs, what was claimed ahead is better left to other workers."""
        if self._buffer and self._monotonic() - self._buffer.touched_at > LONGEST_WAIT_S:
            claims = self._buffer.drain()
            await self._insist(store.release(claims, self._clock()), "release")

    async def _claim(self, wanted: int) -> int:
        lease = await self._hold_lease()
        self._heard = None
        jobs = await self._database.run(store.claim(lease.token, wanted, self._clock()))
        if lease is not self._lease:
            return 0  # lost while we asked; the rescuer has them
        self.counts.claimed += len(jobs)
        self._marks.claimed += len(jobs)
        self._buffer.add(jobs, self._monotonic())
        self._start_runners()
        if self._marks.due:
            await self._marks.advance()
        return len(jobs)

    # running

    def _start_runners(self) -> None:
        missing = min(self.options.concurrency - len(self._runners), len(self._buffer))
        for _ in range(missing):
            runner = asyncio.create_task(self._run_buffered())
            self._runners.add(runner)
            runner.add_done_callback(self._runner_ended)

    def _runner_ended(self, runner: "asyncio.Task[None]") -> None:
        """Its place is free. What was claimed while it was still on its way out must not wait for the next claim."""
        self._runners.discard(runner)
        if self._buffer and not self._stopping.is_set():
            self._start_runners()

    async def _run_buffered(self) -> None:
        """Runs buffered jobs until there are none. Handlers that never wait must not keep the loop to themselves."""
        turn = 0
        while self._buffer and self._lease is not None:
            job = self._buffer.pop(self._monotonic())
            self._wake.set()
            await self._run_one(job, self._lease)
            turn += 1
            if turn % JOBS_PER_TURN == 0:
                await asyncio.sleep(0)
        self._wake.set()

    async def _run_one(self, job: Job, lease: _Lease) -> None:
        run = JobRun(job, self._database, self._clock, lease.held)
        lease.running[job.seq] = run
        try:
            with span(f"job {job.type}", job.traceparent, job=job.id, attempt=job.attempts):
                await self._attempt(job, run)
        except asyncio.CancelledError:
            if _is_being_canceled():
                raise
            await self._record_failure(job, Retryable("something that the handler waited for was canceled"))
        except LeaseLost:
            self.counts.stale += 1
            if not self._lose_if_over(lease) and lease is self._lease:
                # Too near to the lease's end to send anything. If it is ours still, it must not wait for us for ever.
                await self._insist(store.release([job.claim], self._clock()), "release")
        except Exception as error:
            if lease is self._lease:
                await self._record_failure(job, error)
        else:
            if run.ended:
                self.counts.completed += 1
                self._buffer.observe(1, self._monotonic())
            elif lease is self._lease:
                self._ended.append(job)
                if self._finishing is None:
                    self._finishing = asyncio.create_task(self._finish_ended())
        finally:
            del lease.running[job.seq]

    async def _attempt(self, job: Job, run: JobRun) -> None:
        handler = self._handlers.get(job.type)
        if handler is None:
            raise Retryable(f"this worker has no handler for {job.type}; upgrade it, or cancel the job")
        timeout = self._catalogue[job.type].timeout
        if timeout is None:
            await handler(run)
            return
        try:
            async with asyncio.timeout(timeout.total_seconds()):
                await handler(run)
        except TimeoutError:
            raise Retryable(f"took longer than {timeout.total_seconds():g} s") from None

    # ending

    async def _finish_ended(self) -> None:
        """Writes all that has completed, again and again until nothing is left to write."""
        try:
            while self._ended:
                ended, self._ended = self._ended, []
                self._in_flight = ended
                claims = [Claim(job.seq, job.attempts, job.token) for job in ended]
                releasing = [job.seq for job in ended if job.releases_key]
                done = await self._insist(store.finish(claims, releasing, self._clock()), "finish")
                if done is not None:
                    self.counts.completed += len(done)
                    self.counts.stale += len(claims) - len(done)
                    self._buffer.observe(len(done), self._monotonic())
        finally:
            self._in_flight = []
            self._finishing = None
            self._wake.set()

    async def _record_failure(self, job: Job, error: Exception) -> None:
        ending = ending_of(job, error, self._catalogue.retry_policy(job.type), self._rng, self._clock())
        if not await self._insist(ending.transaction, ending.outcome):
            self.counts.stale += 1
            return
        setattr(self.counts, ending.outcome, getattr(self.counts, ending.outcome) + 1)
        if ending.outcome == "failed":
            # The text is kept with the job; here only its kind, since it may quote what the job was about.
            log.warning("job.failed", job=str(job.id), type=job.type, attempts=job.attempts, error=type(error).__name__)

    async def _insist(self, transaction: Any, what: str) -> Any:
        """Writes an end for as long as the lease holds. Giving that up gives up the lease: the rescuer has the rest."""
        lease = self._lease
        while True:
            try:
                return await self._database.run(transaction)
            except Exception as error:
                log.warning("worker.end_not_written", end=what, error=type(error).__name__)
                if lease is None or lease is not self._lease:
                    return None
                if self._lose_if_over(lease):
                    return None
                await asyncio.sleep(PAUSE_AFTER_STORE_ERROR_S)

    # the lease

    async def _hold_lease(self) -> _Lease:
        if self._lease is None:
            now, seconds = self._clock(), self.options.lease.total_seconds()
            lease = _Lease(new_id(), now + self.options.lease, HeldLease(0.0), 0.0)
            lease.renewed(lease.until, self._boot(), seconds)
            await self._database.run(store.open_lease(lease.token, holder_name(), now, lease.until))
            self._lease = lease
        return self._lease

    async def _beat_forever(self) -> None:
        while True:
            await asyncio.sleep(self.options.heartbeat.total_seconds())
            await self._beat()

    async def _beat(self) -> None:
        lease = self._lease
        if lease is None or self._lose_if_over(lease):
            return
        now, started = self._clock(), self._boot()
        until = now + self.options.lease
        try:
            pulse = await self._database.run(store.heartbeat(lease.token, now, until, list(lease.running)))
        except Exception as error:
            log.warning("worker.heartbeat_failed", error=type(error).__name__)
            self._lose_if_over(lease)
            return
        if not pulse.alive:
            self._lose(lease)
            return
        lease.renewed(until, started, self.options.lease.total_seconds())
        for seq in pulse.canceled:
            if seq in lease.running:
                lease.running[seq].cancel_requested = True

    def _lose_if_over(self, lease: _Lease) -> bool:
        """Whether the lease ran out before it could be renewed: the process or the machine slept for too long."""
        is_over = self._boot() >= lease.lost_at
        if is_over and lease is self._lease:
            self._lose(lease)
        return is_over

    def _lose(self, lease: _Lease) -> None:
        """What we hold is someone else's by now: drop it, change nothing, begin anew."""
        log.error("worker.lease_lost", running=len(lease.running), buffered=len(self._buffer))
        if self._lease is lease:
            self._lease = None
            self.counts.stale += len(self._buffer.drain())
            self._ended.clear()
            for runner in self._runners:
                runner.cancel()
            self._wake.set()

    # leaving

    async def _drain(self) -> None:
        """Gives back what was not begun, then waits for what was."""
        claims = self._buffer.drain()
        if claims:
            await self._insist(store.release(claims, self._clock()), "release")
        pending: set[asyncio.Task[None]] = set(self._runners)
        if pending:
            await asyncio.wait(pending, timeout=self.options.drain.total_seconds())
        if self._finishing is not None:
            await self._finishing

    async def _leave(self) -> None:
        if self._lease is not None:
            with contextlib.suppress(StoreError):
                await self._database.run(store.close_lease(self._lease.token, self._clock()))
            self._lease = None


def holder_name() -> str:
    """Who holds a lease, for people who look at one."""
    return f"{socket.gethostname()}:{os.getpid()}"


def _is_being_canceled() -> bool:
    """Whether it is us who are to stop, and not something that we waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _end(task: "asyncio.Task[Any]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
