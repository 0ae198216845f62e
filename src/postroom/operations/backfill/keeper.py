"""The keeper of the queues: periodic maintenance.

Several may run on one database: every step is harmless right after the same step of another keeper.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo

import structlog

from postroom.core import metrics
from postroom.core.errors import PostroomError
from postroom.core.metrics import LOG_SIZE, QUEUE_DEPTH
from postroom.core.queue.queues import Queues
from postroom.core.tally import Gauges
from postroom.intake.buffer import Buffer
from postroom.operations.backfill.backfill_work import BackfillWork
from postroom.store.engine.database import Database
from postroom.store.engine.listeners import signalled
from postroom.store.installation import figure_folds, rollups
from postroom.store.intake import connectors, history, inbox, queue_depths
from postroom.store.intake.acceptance import CHANNEL
from postroom.store.jobs.work_figures import load_work_figures
from postroom.system.wall_clock import Clock, wall_clock

log = structlog.get_logger()

PRUNED_AT_ONCE = 500
ADOPTED_AT_ONCE = 1000
MEASURE_SHARE = 0.02
SWEEP_EVERY = timedelta(seconds=1)
# While the queues are empty; new messages are announced.
SWEEP_AT_REST = timedelta(seconds=30)
MEASURE_EVERY = timedelta(seconds=30)
SAMPLE_EVERY = timedelta(minutes=5)
FOLD_EVERY = timedelta(minutes=5)
ACTION_STATES = ("queued", "approved_pending", "executing", "failed")
CALL_STATES = ("started", "answered", "refused", "failed")


@dataclass(eq=False, slots=True)
class Keeper:
    """Sweeps, measures and prunes."""

    database: Database
    queues: Queues
    buffer: Buffer
    gauges: Gauges
    _: KW_ONLY
    keep: timedelta
    keep_rollups: timedelta
    clock: Clock = wall_clock
    log_bytes: Callable[[], int | None] = lambda: None
    backfills: BackfillWork | None = None
    zone: tzinfo = UTC
    """`zone` is that of the owner's day."""
    _measure_at: float = field(default=float("-inf"), init=False)
    _sampled_at: datetime | None = field(default=None, init=False)

    async def run(self) -> None:
        """Run until canceled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._sweep())
            group.create_task(self._every(MEASURE_EVERY, self._measure_with_backoff))
            group.create_task(self._every(MEASURE_EVERY, self.measure_log))
            group.create_task(self._every(timedelta(minutes=1), self.measure_work))
            group.create_task(self._every(timedelta(minutes=1), self.forget_texts))
            group.create_task(self._every(timedelta(minutes=1), self.sample_depths))
            if self.backfills is not None:
                group.create_task(self._every(timedelta(minutes=1), self.backfills.begin_day))
            group.create_task(self._every(FOLD_EVERY, self.fold_figures))
            group.create_task(self._every(timedelta(hours=1), self.prune))

    async def adopt_strays(self) -> None:
        """Move messages out of tiers that are no longer in the settings; log queues that are not."""
        for name in self.queues.names:
            moved = 0
            while step := await self.database.run(inbox.adopt_strays(self.queues[name], ADOPTED_AT_ONCE)):
                moved += step
            if moved:
                log.warning("queue.strays_adopted", queue=name, messages=moved)
        for name in await self.database.run(history.live_queues()):
            if name not in self.queues.names:
                log.error("queue.not_in_settings", queue=name)

    async def measure(self) -> None:
        """Update the depth of each queue in the metrics."""
        depths = await self.database.run(history.depths())
        found = {(each.queue, each.tier, each.state): float(each.count) for each in depths}
        known = [
            (name, tier, state)
            for name in self.queues.names
            for tier in self.queues[name].tiers
            for state in ("waiting", "leased")
        ]
        self.gauges.show(QUEUE_DEPTH, {place: found.get(place, 0.0) for place in known})

    async def sample_depths(self) -> None:
        """Store how much waits, once for every five minutes."""
        now = self.clock()
        at = now - (now - datetime.min.replace(tzinfo=UTC)) % SAMPLE_EVERY
        if at == self._sampled_at:
            return
        depths = await self.database.run(history.depths())
        found = {(each.queue, each.tier): each.count for each in depths if each.state == "waiting"}
        known = [(name, tier) for name in self.queues.names for tier in self.queues[name].tiers]
        samples = [queue_depths.DepthSample(*place, found.get(place, 0)) for place in known]
        await self.database.run(queue_depths.keep_depths(samples, at))
        self._sampled_at = at

    async def measure_log(self) -> None:
        """Update the size of SQLite's write-ahead log in the metrics."""
        size = self.log_bytes()
        if size is not None:
            self.gauges.show(LOG_SIZE, {(): float(size)})

    async def measure_work(self) -> None:
        """Update jobs, actions, approvals, the model's spend and the size of the database in the metrics."""
        now = self.clock()
        found = await self.database.run(load_work_figures(now, self.zone))
        waited = 0.0 if found.oldest_approval is None else (now - found.oldest_approval).total_seconds()
        self.gauges.show(metrics.JOBS, {place: float(count) for place, count in found.jobs.items()})
        self.gauges.show(metrics.ACTIONS, _by_state(ACTION_STATES, found.actions))
        self.gauges.show(metrics.APPROVAL_AGE, {(): max(0.0, waited)})
        self.gauges.show(metrics.MODEL_SPEND, {(): found.model_micros / 1_000_000})
        self.gauges.show(metrics.MODEL_CALLS, _by_state(CALL_STATES, found.model_calls))
        self.gauges.show(metrics.DATABASE_SIZE, {(): float(found.database_bytes)})

    async def _measure_with_backoff(self) -> None:
        """Measure the queues, less often the longer it takes: counting takes time in proportion to the depth."""
        if time.monotonic() >= self._measure_at:
            started = time.monotonic()
            await self.measure()
            now = time.monotonic()
            self._measure_at = now + (now - started) / MEASURE_SHARE

    async def fold_figures(self) -> None:
        """Sum up the counts by hour whose time is over, a step at a time."""
        for name in figure_folds.STEPS:
            while await self.database.run(figure_folds.fold_next(name, self.clock())):
                pass

    async def forget_texts(self) -> None:
        await self.database.run(inbox.forget_texts(self.clock()))

    async def prune(self) -> None:
        """Delete messages that ended long ago, in batches. Also adopts messages that were replayed into old tiers."""
        await self.adopt_strays()
        before = self.clock() - self.keep
        for name in self.queues.names:
            pruned = PRUNED_AT_ONCE
            while pruned == PRUNED_AT_ONCE:
                pruned = await self.database.run(inbox.prune_inbox(name, before, PRUNED_AT_ONCE))
        await self.database.run(rollups.prune_rollups(self.clock() - self.keep_rollups))
        await self.database.run(queue_depths.prune_depths(self.clock() - self.keep_rollups))
        await self.database.run(connectors.prune_connectors(before))

    async def _sweep(self) -> None:
        """Return expired leases and end what waited too long, every second while there is anything in the queues."""
        changed = asyncio.Event()
        subscription = self.database.subscribe(CHANNEL, lambda _message: changed.set())
        try:
            while True:
                changed.clear()
                is_empty = False
                try:
                    await self.buffer.sweep()
                    is_empty = not await self.database.run(inbox.any_message())
                except PostroomError as error:
                    log.warning("keeper.interrupted", error=type(error).__name__)
                await asyncio.sleep(SWEEP_EVERY.total_seconds())
                if is_empty:
                    await signalled(changed, SWEEP_AT_REST.total_seconds())
        finally:
            subscription.close()

    async def _every(self, pause: timedelta, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await work()
            except PostroomError as error:
                log.warning("keeper.interrupted", error=type(error).__name__)
            await asyncio.sleep(pause.total_seconds())


def _by_state(states: Sequence[str], counts: Mapping[str, int]) -> dict[tuple[str, ...], float]:
    """The counts of all states: one that nothing is in is 0, not missing."""
    return {(state,): float(counts.get(state, 0)) for state in states}
