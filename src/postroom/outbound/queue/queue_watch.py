"""Watches the outbound queue: how much waits, for how long, and which limits of the lanes follow from it."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog

from postroom.core.errors import StoreError
from postroom.core.outbound.health import QueueHealth, adaptive_limits, queue_health
from postroom.core.outbound.lanes import Lane
from postroom.store.engine.database import Database
from postroom.store.engine.listeners import signalled
from postroom.store.outbound.outbound_figures import WaitingLane, waiting_lanes
from postroom.store.outbound.outbound_signals import CHANNEL
from postroom.system.wall_clock import Clock, wall_clock

log = structlog.get_logger()

PERIOD = timedelta(seconds=5)
LOOKING_SHARE = 0.02
IDLE_S = 60.0


@dataclass(eq=False, slots=True)
class QueueWatch:
    """The health of the queue as it was a moment ago. Without a look yet, there are no limits."""

    database: Database
    max_queue: int
    clock: Clock = wall_clock
    period: timedelta = PERIOD
    health: QueueHealth | None = field(default=None, init=False)

    async def run(self) -> None:
        """Look again and again until canceled; less often the longer it takes, since many senders may wait."""
        wake = asyncio.Event()
        subscription = self.database.subscribe(CHANNEL, lambda _message: wake.set())
        try:
            while True:
                wake.clear()
                started, waits = time.monotonic(), True
                try:
                    waits = bool((await self.look()).queued)
                except StoreError as error:
                    log.warning("outbound.queue_not_seen", error=type(error).__name__)
                took = time.monotonic() - started
                await asyncio.sleep(max(self.period.total_seconds(), took / LOOKING_SHARE))
                if not waits:
                    await signalled(wake, IDLE_S)
        finally:
            subscription.close()

    async def look(self) -> QueueHealth:
        lanes = await self.database.run(waiting_lanes())
        self.health = health_of(lanes, self.max_queue, self.clock())
        return self.health

    def limits(self, slots: int) -> dict[Lane, int]:
        """How many of so many slots each lane may have while others have mail too.

        Retries, and mail that goes first in, first out, are bounded like normal mail: without a limit they would get
        all that a bad queue takes from the other lanes.
        """
        if self.health is None:
            return {}
        limits = adaptive_limits(self.health, slots)
        return {**limits, "retry": limits["normal"], "fifo": limits["normal"]}


def health_of(lanes: Sequence[WaitingLane], max_queue: int, now: datetime) -> QueueHealth:
    """Judge what waits. Mail that is held back, by a throttle or a pause, is no burden to the queue."""
    due = [each.oldest_due_at for each in lanes if each.oldest_due_at is not None]
    oldest_wait = max(timedelta(0), now - min(due, default=now))
    return queue_health(sum(each.waiting for each in lanes), oldest_wait, max_queue)
