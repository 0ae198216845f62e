"""The worker: claims jobs ahead, runs a bounded number at a time, and records completions in groups.

    claimer ──► buffer ──► runners (at most `concurrency`) ──► finisher
       ▲                                                          │
       └── a signal, a more urgent job, or the poll               └── one transaction for all that ended meanwhile

One lease covers everything the process holds. It is renewed while the process lives. When it is lost (the process was
stopped for too long, or the database was away), all jobs in hand are dropped, since other workers may have them.

Successful jobs are not logged: at tens of thousands a second, a line each would be most of the work.
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
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.listeners import signalled
from postroom.store.jobs import jobs as store
from postroom.system.boot_clock import BootClock, since_boot
from postroom.system.wall_clock import Clock, wall_clock
from postroom.telemetry.tracing import span

log = structlog.get_logger()

LARGEST_BUFFER = 2000
LARGEST_CLAIM = 1000
JOBS_PER_TURN = 100
LOOK_AFTER_BUFFER_S = 1.0
PAUSE_AFTER_STORE_ERROR_S = 0.5
LONGEST_WAIT_S = 1.0
# The part of a lease during which requests may still be sent under it: they take a while to arrive.
USABLE_PART = 0.9


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """The settings of one worker process."""

    concurrency: int = 32
    prefetch: timedelta = timedelta(milliseconds=50)
    lease: timedelta = timedelta(seconds=60)
    heartbeat: timedelta = timedelta(seconds=20)
    drain: timedelta = timedelta(seconds=30)
    poll: timedelta = timedelta(seconds=1)


@dataclass(slots=True)
class Counts:
    """The work of this worker so far, as plain numbers."""

    claimed: int = 0
    completed: int = 0
    failed: int = 0
    retried: int = 0
    canceled: int = 0
    parked: int = 0
    stale: int = 0


@dataclass(slots=True)
class _Lease:
    """The lease of this process. `held` is what requests to mailboxes are checked against: it ends a little before the
    lease, since requests take time. `lost_at`, in seconds since boot, is when the lease is certainly over."""

    token: Any
    until: datetime
    held: HeldLease
    lost_at: float
    running: dict[int, JobRun] = field(default_factory=dict[int, JobRun])

    def renewed(self, until: datetime, started: float, seconds: float) -> None:
        """Note a renewal by a transaction that began at `started`."""
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
        """Claim nothing more, and end when the running jobs have ended, or after the drain time."""
        self._stopping.set()
        self._wake.set()

    async def run(self) -> None:
        """Work until `stop`. Survives the database going away for any length of time."""
        subscription = self._database.subscribe(store.CHANNEL, self._note_announced)
        beating = asyncio.create_task(self._renew_lease_forever(), name="postroom-heartbeat")
        log.info("worker.started", concurrency=self.options.concurrency, database=self._database.dialect)
        try:
            await self._claim_until_stopped()
            await self._drain()
        finally:
            self._stopping.set()
            self._buffer.drain()  # closing the lease returns what was not given back
            subscription.close()
            await _end(beating)
            for runner in self._runners:
                runner.cancel()
            await asyncio.gather(*self._runners, return_exceptions=True)
            if self._finishing is not None:
                await asyncio.gather(self._finishing, return_exceptions=True)
            await self._close_lease()
            log.info("worker.stopped", completed=self.counts.completed, failed=self.counts.failed)

    # claiming

    def _note_announced(self, message: str) -> None:
        """Remember the most urgent job announced since the last claim began."""
        if message:
            self._heard = max(int(message), self._heard if self._heard is not None else int(message))
        self._wake.set()

    async def _claim_until_stopped(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            await self._give_back_overdue()
            wanted = self._claim_size()
            if not wanted or await self._try_to_claim(wanted) < wanted:
                await signalled(self._wake, self._poll_s * self._rng.uniform(0.8, 1.2))

    @property
    def _poll_s(self) -> float:
        """How long to wait for a signal. What was claimed ahead is looked after more often."""
        poll_s = self.options.poll.total_seconds()
        return min(poll_s, LOOK_AFTER_BUFFER_S) if self._buffer or self._doubtful else poll_s

    async def _try_to_claim(self, wanted: int) -> int:
        try:
            if self._doubtful:
                await self._give_back_unknown()
            return await self._claim(wanted)
        except StoreError as error:
            log.warning("worker.claim_failed", error=type(error).__name__)
            self._doubtful = True
            return 0

    async def _give_back_unknown(self) -> None:
        """Give back jobs that we hold without knowing: a claim whose outcome we never learned may have succeeded."""
        if self._lease is not None:
            known = [*self._lease.running, *self._buffer.seqs(), *(job.seq for job in (*self._ended, *self._in_flight))]
            await self._database.run(store.disown(self._lease.token, known, self._clock()))
        self._doubtful = False

    def _claim_size(self) -> int:
        if len(self._ended) > LARGEST_BUFFER:
            return 0  # the database cannot keep up with completions; do not pile up more
        highest = self._buffer.highest_priority
        if self._heard is not None and highest is not None and self._heard > highest:
            return max(0, min(self.options.concurrency, LARGEST_BUFFER - len(self._buffer)))
        return min(self._buffer.wanted(self._free_slots, self._monotonic()), LARGEST_CLAIM)

    @property
    def _free_slots(self) -> int:
        return self.options.concurrency - (len(self._lease.running) if self._lease is not None else 0)

    async def _give_back_overdue(self) -> None:
        """When slow jobs take every slot, leave what was claimed ahead to other workers."""
        if self._buffer and self._monotonic() - self._buffer.touched_at > LONGEST_WAIT_S:
            claims = self._buffer.drain()
            await self._record_end(store.release(claims, self._clock()), "release")

    async def _claim(self, wanted: int) -> int:
        lease = await self._hold_lease()
        self._heard = None
        jobs = await self._database.run(store.claim(lease.token, wanted, self._clock()))
        if lease is not self._lease:
            return 0  # the lease was lost meanwhile; the rescuer returns the jobs
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
        """Free the slot. Jobs that were claimed while the runner was ending must not wait for the next claim."""
        self._runners.discard(runner)
        if self._buffer and not self._stopping.is_set():
            self._start_runners()

    async def _run_buffered(self) -> None:
        """Run buffered jobs until there are none. Yields now and then, since some handlers never wait."""
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
            if not self._drop_if_expired(lease) and lease is self._lease:
                # The lease is too near its end to send anything. If the job is still ours, do not hold it forever.
                await self._record_end(store.release([job.claim], self._clock()), "release")
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
        """Record completions in groups until none are left."""
        try:
            while self._ended:
                ended, self._ended = self._ended, []
                self._in_flight = ended
                claims = [Claim(job.seq, job.attempts, job.token) for job in ended]
                releasing = [job.seq for job in ended if job.releases_key]
                done = await self._record_end(store.finish(claims, releasing, self._clock()), "finish")
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
        if not await self._record_end(ending.transaction, ending.outcome):
            self.counts.stale += 1
            return
        setattr(self.counts, ending.outcome, getattr(self.counts, ending.outcome) + 1)
        if ending.outcome == "failed":
            # The text is stored with the job. Only the type is logged, since the text may quote mail.
            log.warning("job.failed", job=str(job.id), type=job.type, attempts=job.attempts, error=type(error).__name__)

    async def _record_end(self, transaction: Any, what: str) -> Any:
        """Retry recording an end while the lease holds. If that fails, give up the lease: the rescuer does the rest."""
        lease = self._lease
        while True:
            try:
                return await self._database.run(transaction)
            except Exception as error:
                log.warning("worker.end_not_written", end=what, error=type(error).__name__)
                if lease is None or lease is not self._lease:
                    return None
                if self._drop_if_expired(lease):
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

    async def _renew_lease_forever(self) -> None:
        while True:
            await asyncio.sleep(self.options.heartbeat.total_seconds())
            await self._renew_lease()

    async def _renew_lease(self) -> None:
        lease = self._lease
        if lease is None or self._drop_if_expired(lease):
            return
        now, started = self._clock(), self._boot()
        until = now + self.options.lease
        try:
            pulse = await self._database.run(store.heartbeat(lease.token, now, until, list(lease.running)))
        except Exception as error:
            log.warning("worker.heartbeat_failed", error=type(error).__name__)
            self._drop_if_expired(lease)
            return
        if not pulse.alive:
            self._drop_lease(lease)
            return
        lease.renewed(until, started, self.options.lease.total_seconds())
        for seq in pulse.canceled:
            if seq in lease.running:
                lease.running[seq].cancel_requested = True

    def _drop_if_expired(self, lease: _Lease) -> bool:
        """Drop the lease if it expired before it was renewed: the process or the machine slept for too long."""
        is_over = self._boot() >= lease.lost_at
        if is_over and lease is self._lease:
            self._drop_lease(lease)
        return is_over

    def _drop_lease(self, lease: _Lease) -> None:
        """Drop all jobs in hand without changing them, since other workers may have them; then start over."""
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
        """Give back jobs that were not started, then wait for those that were."""
        claims = self._buffer.drain()
        if claims:
            await self._record_end(store.release(claims, self._clock()), "release")
        pending: set[asyncio.Task[None]] = set(self._runners)
        if pending:
            await asyncio.wait(pending, timeout=self.options.drain.total_seconds())
        if self._finishing is not None:
            await self._finishing

    async def _close_lease(self) -> None:
        if self._lease is not None:
            with contextlib.suppress(StoreError):
                await self._database.run(store.close_lease(self._lease.token, self._clock()))
            self._lease = None


def holder_name() -> str:
    """The holder of a lease as people see it: host and process id."""
    return f"{socket.gethostname()}:{os.getpid()}"


def _is_being_canceled() -> bool:
    """Whether this task itself is being canceled, and not something that it awaited."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _end(task: "asyncio.Task[Any]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
