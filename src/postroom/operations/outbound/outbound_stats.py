"""The figures of the outbound queue since a time: fairness, waits, deliveries, health and throttles."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

from postroom.core.access import READ
from postroom.core.outbound.delivery_health import DeliveryHealth
from postroom.core.outbound.fairness import Discipline
from postroom.core.outbound.rollout import Stage
from postroom.core.outbound.time_buckets import Spread
from postroom.operations.nouns import OUTBOUND
from postroom.operations.operation import Argument, command
from postroom.operations.outbound.outbound_health import outbound_health
from postroom.outbound.queue.statistics import (
    DISCIPLINES,
    AbuseStats,
    DisciplineStats,
    QueueStats,
    abuse_stats,
    choosing_both,
    discipline_stats,
    queue_stats,
)
from postroom.settings.outbound import OutboundSettings
from postroom.settings.reading import Settings
from postroom.store.engine.database import Database
from postroom.store.installation.rollups import hour_of
from postroom.store.outbound.outbound_figures import OutboundFigures, load_figures
from postroom.store.outbound.outbound_figures import TimedLane as TimedLane
from postroom.store.outbound.sender_counts import next_hour
from postroom.system.wall_clock import Clock

HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class OutboundStats:
    """All figures, from full hours. `stage` and `share` are those of the settings; there may be figures of both
    disciplines in any stage, since it may have changed."""

    since: datetime
    until: datetime
    stage: Stage
    share: float | None
    disciplines: Mapping[Discipline, DisciplineStats]
    choosing_both: Spread | None
    """The time to choose batches with mail of both disciplines."""
    queue: QueueStats
    abuse: AbuseStats
    health: DeliveryHealth
    """By the last hours, whatever the window."""


@OUTBOUND.operation(READ, command("outbound stats"))
async def outbound_stats(
    database: Database,
    settings: Settings,
    clock: Clock,
    /,
    since: Annotated[datetime | None, Argument("From the hour of this time on, by default of a day ago.")] = None,
) -> OutboundStats:
    """Show how evenly tenants, domains and senders were served, how long mail waited, and the health of the queue."""
    now = clock()
    start = hour_of(since or now - timedelta(days=1))
    figures = await database.run(load_figures(start, next_hour(now), now))
    return stats_of(figures, await outbound_health(database, settings.outbound, now), settings.outbound, start, now)


def stats_of(
    figures: OutboundFigures, health: DeliveryHealth, settings: OutboundSettings, start: datetime, now: datetime
) -> OutboundStats:
    """Say what the figures of the hours since `start` mean."""
    hours = max((now - start) / HOUR, 1 / 60)
    rollout = settings.rollout
    return OutboundStats(
        since=start,
        until=now,
        stage=rollout.stage,
        share=rollout.share if rollout.stage == "share" else None,
        disciplines={each: discipline_stats(figures, each, hours) for each in DISCIPLINES},
        choosing_both=choosing_both(figures),
        queue=queue_stats(figures, settings.max_queue, settings.slots, now),
        abuse=abuse_stats(figures.throttles, figures.throttled_mail),
        health=health,
    )
