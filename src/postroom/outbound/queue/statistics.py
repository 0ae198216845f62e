"""Statistics of the outbound queue: how evenly tenants were served, how long mail waited, and how abuse was
found. The command, the pages and the metrics show the same."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import get_args

from postroom.core.outbound.fairness import Discipline, Evenness, ServedLevel, Service, evenness
from postroom.core.outbound.health import adaptive_limits
from postroom.core.outbound.lanes import LANES, Lane
from postroom.core.outbound.priority import SenderLane
from postroom.core.outbound.time_buckets import Spread, TimeBuckets, microseconds
from postroom.core.views import Internal
from postroom.outbound.queue.queue_watch import health_of
from postroom.store.outbound.outbound_figures import (
    OutboundFigures,
    SenderService,
    TimeCount,
    TimedDiscipline,
    TimedLane,
    TimeMeasure,
)
from postroom.store.outbound.sender_counts import ThrottleFigures

LEVELS: tuple[ServedLevel, ...] = get_args(ServedLevel)
DISCIPLINES: tuple[Discipline, ...] = get_args(Discipline)

_Series = tuple[TimeMeasure, TimedDiscipline, TimedLane]


@dataclass(frozen=True, slots=True)
class DisciplineStats:
    """The figures of mail in the fair queue, or of mail that goes first in, first out. Times have an entry for each
    lane that has any, and one for `all`."""

    leased: int
    delivered: int
    """Recipients to whom mail was delivered."""
    delivered_per_hour: float
    evenness: Mapping[ServedLevel, Evenness]
    waits: Mapping[TimedLane, Spread]
    deliveries: Mapping[TimedLane, Spread]
    choosing: Spread | None


@dataclass(frozen=True, slots=True)
class QueueStats:
    """The queue as it is now. `limits` are those of a process with so many slots, while lanes compete."""

    multiplier: float
    waiting: int
    oldest_wait_s: float
    lanes: Internal[Mapping[Lane, int]]
    slots: int
    limits: Mapping[SenderLane, int]


@dataclass(frozen=True, slots=True)
class AbuseStats:
    """Throttles as they are now, and those for a score that began in the window."""

    senders_held: int
    senders_draining: int
    mail_held: int
    throttled: int
    released_by_hand: int
    false_positives: float | None
    """The share that a person has released; None if nobody was throttled."""
    time_to_detect: Spread | None


def discipline_stats(figures: OutboundFigures, discipline: Discipline, hours: float) -> DisciplineStats:
    """The figures of one discipline. `hours` is the length of the window."""
    service = [each for each in figures.service if each.discipline == discipline]
    series = _series(figures.times)
    deliveries = _by_lane(series, "delivery", discipline)
    delivered = deliveries["all"].count if deliveries else 0
    return DisciplineStats(
        leased=sum(each.mails for each in service),
        delivered=delivered,
        delivered_per_hour=delivered / hours,
        evenness=evenness_by_level(service),
        waits=_by_lane(series, "wait", discipline),
        deliveries=deliveries,
        choosing=series["choosing", discipline, "all"].spread(),
    )


def choosing_both(figures: OutboundFigures) -> Spread | None:
    """The time to choose batches with mail of both disciplines."""
    return _series(figures.times)["choosing", "both", "all"].spread()


def evenness_by_level(service: Iterable[SenderService]) -> dict[ServedLevel, Evenness]:
    """How evenly tenants, domains and senders were served, each by its own weight."""
    served: dict[ServedLevel, defaultdict[int, float]] = {level: defaultdict(float) for level in LEVELS}
    weights: dict[ServedLevel, dict[int, float]] = {level: {} for level in LEVELS}
    for each in service:
        nodes: tuple[tuple[ServedLevel, int, float], ...] = (
            ("tenant", each.tenant_id, each.tenant_weight),
            ("domain", each.domain_id, each.domain_weight),
            ("sender", each.sender_id, each.sender_weight),
        )
        for level, id, weight in nodes:
            served[level][id] += each.recipients
            weights[level][id] = weight
    return {
        level: evenness(Service(count, weights[level][id]) for id, count in served[level].items()) for level in LEVELS
    }


def queue_stats(figures: OutboundFigures, max_queue: int, slots: int, now: datetime) -> QueueStats:
    health = health_of(figures.waiting, max_queue, now)
    waiting = {each.lane: each.waiting for each in figures.waiting}
    return QueueStats(
        multiplier=health.multiplier,
        waiting=health.queued,
        oldest_wait_s=health.oldest_wait.total_seconds(),
        lanes={lane: waiting.get(lane, 0) for lane in LANES},
        slots=slots,
        limits=adaptive_limits(health, slots),
    )


def abuse_stats(throttles: ThrottleFigures, mail_held: int) -> AbuseStats:
    detections = TimeBuckets()
    for seconds in throttles.detection_s:
        detections.add(microseconds(timedelta(seconds=seconds)))
    return AbuseStats(
        senders_held=throttles.waiting,
        senders_draining=throttles.draining,
        mail_held=mail_held,
        throttled=throttles.throttled,
        released_by_hand=throttles.released_by_hand,
        false_positives=throttles.released_by_hand / throttles.throttled if throttles.throttled else None,
        time_to_detect=detections.spread(),
    )


def _series(times: Sequence[TimeCount]) -> defaultdict[_Series, TimeBuckets]:
    found: defaultdict[_Series, TimeBuckets] = defaultdict(TimeBuckets)
    for each in times:
        buckets = found[each.measure, each.discipline, each.lane]
        buckets.counts[each.bucket] += each.count
        buckets.total_us += each.total_us
    return found


def _by_lane(
    series: Mapping[_Series, TimeBuckets], measure: TimeMeasure, discipline: Discipline
) -> dict[TimedLane, Spread]:
    whole, spreads = TimeBuckets(), dict[TimedLane, Spread]()
    for lane in get_args(SenderLane):
        buckets = series.get((measure, discipline, lane))
        if buckets is not None and (spread := buckets.spread()) is not None:
            spreads[lane] = spread
            whole.merge(buckets)
    if (spread := whole.spread()) is not None:
        spreads["all"] = spread
    return spreads
