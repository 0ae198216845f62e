"""Shows the figures of the outbound queue in the metrics, every minute, in the process that leads."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog

from postroom.core import metrics
from postroom.core.errors import StoreError
from postroom.core.metrics import Metric
from postroom.core.tally import Attributes, Gauges
from postroom.outbound.queue.statistics import (
    DISCIPLINES,
    abuse_stats,
    evenness_by_level,
    queue_stats,
)
from postroom.store.engine.database import Database
from postroom.store.installation.rollups import hour_of
from postroom.store.outbound.outbound_figures import OutboundFigures, load_figures, prune_outbound_figures
from postroom.store.outbound.sender_counts import next_hour, throttle_figures
from postroom.store.outbound.suppressions import prune_suppressions
from postroom.system.wall_clock import Clock, wall_clock

log = structlog.get_logger()

PERIOD = timedelta(minutes=1)
PRUNE_EVERY = timedelta(hours=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)

SHOWN = (
    metrics.OUTBOUND_WAITING,
    metrics.OUTBOUND_GINI,
    metrics.OUTBOUND_JAIN,
    metrics.OUTBOUND_LARGEST_SHARE,
    metrics.OUTBOUND_THROTTLED,
    metrics.OUTBOUND_THROTTLED_MAIL,
    metrics.OUTBOUND_FALSE_POSITIVES,
    metrics.OUTBOUND_TIME_TO_DETECT,
    metrics.OUTBOUND_HEALTH,
    metrics.OUTBOUND_LANE_LIMIT,
)

Values = dict[Metric, dict[Attributes, float]]


@dataclass(eq=False, slots=True)
class OutboundGauges:
    """Of several processes only the one that leads shows anything, so that nothing is shown twice."""

    database: Database
    gauges: Gauges
    leads: Callable[[], bool]
    max_queue: int
    slots: int
    clock: Clock = wall_clock
    _prune_at: datetime | None = field(default=None, init=False)

    async def run(self) -> None:
        """Run until canceled."""
        while True:
            try:
                await self.show()
                await self._prune()
            except StoreError as error:
                log.warning("outbound.figures_not_shown", error=type(error).__name__)
            await asyncio.sleep(PERIOD.total_seconds())

    async def show(self) -> None:
        """Show what is true now, or nothing unless this process leads."""
        values: Values = {}
        if self.leads():
            now = self.clock()
            figures = await self.database.run(load_figures(hour_of(now - HOUR), next_hour(now), now))
            throttles = await self.database.run(throttle_figures(now - DAY, now))
            values = self._values(figures._replace(throttles=throttles), now)
        for metric in SHOWN:
            self.gauges.show(metric, values.get(metric, {}))

    def _values(self, figures: OutboundFigures, now: datetime) -> Values:
        queue = queue_stats(figures, self.max_queue, self.slots, now)
        abuse = abuse_stats(figures.throttles, figures.throttled_mail)
        values: Values = {
            metrics.OUTBOUND_WAITING: {(lane,): float(count) for lane, count in queue.lanes.items()},
            metrics.OUTBOUND_THROTTLED: {
                ("held",): float(abuse.senders_held),
                ("draining",): float(abuse.senders_draining),
            },
            metrics.OUTBOUND_THROTTLED_MAIL: {(): float(abuse.mail_held)},
            metrics.OUTBOUND_HEALTH: {(): queue.multiplier},
            metrics.OUTBOUND_LANE_LIMIT: {(lane,): float(limit) for lane, limit in queue.limits.items()},
        }
        if abuse.false_positives is not None:
            values[metrics.OUTBOUND_FALSE_POSITIVES] = {(): abuse.false_positives}
        if abuse.time_to_detect is not None:
            values[metrics.OUTBOUND_TIME_TO_DETECT] = {(): abuse.time_to_detect.p50_s}
        return values | _evenness_values(figures)

    async def _prune(self) -> None:
        now = self.clock()
        if self.leads() and (self._prune_at is None or now >= self._prune_at):
            await self.database.run(prune_outbound_figures(now))
            await self.database.run(prune_suppressions(now))
            self._prune_at = now + PRUNE_EVERY


def _evenness_values(figures: OutboundFigures) -> Values:
    gini: dict[Attributes, float] = {}
    jain: dict[Attributes, float] = {}
    largest: dict[Attributes, float] = {}
    for discipline in DISCIPLINES:
        service = [each for each in figures.service if each.discipline == discipline]
        for level, found in evenness_by_level(service).items():
            if found.members:
                gini[discipline, level] = found.gini
                jain[discipline, level] = found.jain
                largest[discipline, level] = found.largest_share
    return {metrics.OUTBOUND_GINI: gini, metrics.OUTBOUND_JAIN: jain, metrics.OUTBOUND_LARGEST_SHARE: largest}
