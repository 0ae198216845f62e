"""Figures of the outbound queue by hour: who was served, and how long mail waited, took to deliver and to choose.

They are written in the transaction of what they count, a few rows for a batch, so that they are exact and survive
restarts. Tenants, domains and mail of both disciplines, the fair queue and first in, first out, are counted alike.

The lane is that of the sender's priority, also for mail in first in, first out and for retries, so that the waits of
one priority can be compared between the disciplines.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, NamedTuple
from uuid import UUID

from postroom.core.outbound.fairness import Discipline
from postroom.core.outbound.lanes import Lane
from postroom.core.outbound.priority import SenderLane
from postroom.core.outbound.time_buckets import bucket_of, microseconds
from postroom.store.engine.codecs import as_optional_time, rows_text
from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.engine.reading import read_first, read_rows
from postroom.store.installation.figure_folds import folded_part
from postroom.store.installation.rollups import SHARDS, hour_of
from postroom.store.outbound.sender_counts import ThrottleFigures, throttle_figures

TimeMeasure = Literal["wait", "delivery", "choosing"]
TimedDiscipline = Literal["fair", "fifo", "both"]
TimedLane = Literal["high", "normal", "low", "throttled", "all"]

KEEP = timedelta(days=35)


class LeaseFigure(NamedTuple):
    """A mail that was leased. `wait` is the time since its acceptance, if this was its first lease."""

    discipline: Discipline
    sender_id: int
    lane: SenderLane
    recipients: int
    wait: timedelta | None


class _Time(NamedTuple):
    measure: TimeMeasure
    discipline: TimedDiscipline
    lane: TimedLane
    time_us: int
    times: int = 1


def recording_leases(leases: Iterable[LeaseFigure], choosing: timedelta | None, now: datetime) -> Script[None]:
    """Part of a transaction that has leased a batch: add its figures. Batches are chosen one after another, so that
    nobody else writes these rows meanwhile."""
    service: defaultdict[tuple[Discipline, int], list[int]] = defaultdict(lambda: [0, 0])
    times: list[_Time] = []
    for discipline, sender_id, lane, recipients, wait in leases:
        served = service[discipline, sender_id]
        served[0] += 1
        served[1] += recipients
        if wait is not None:
            times.append(_Time("wait", discipline, lane, microseconds(wait)))
    if not service:
        return
    if choosing is not None:
        used: set[Discipline] = {discipline for discipline, _ in service}
        chosen: TimedDiscipline = "both" if len(used) > 1 else min(used)
        times.append(_Time("choosing", chosen, "all", microseconds(choosing)))
    rows = [(*key, *served) for key, served in sorted(service.items())]
    yield sql("add_outbound_service", rows_text(rows), hour_of(now))
    yield from _adding(times, now, 0)


class _Measured(NamedTuple):
    discipline: Discipline
    admitted_at: datetime
    lane: SenderLane


class Delivered(NamedTuple):
    """A measured mail that has been delivered to so many of its recipients."""

    discipline: Discipline
    lane: SenderLane
    admitted_at: datetime
    recipients: int


def recording_deliveries(delivered: Sequence[Delivered], shard_of: UUID, now: datetime) -> Script[None]:
    """Part of a transaction in which these mails were delivered. Writers at the same time use different shards."""
    times = [
        _Time("delivery", mail.discipline, mail.lane, microseconds(now - mail.admitted_at), mail.recipients)
        for mail in delivered
    ]
    yield from _adding(times, now, shard_of.int % SHARDS)


def recording_delivery(mail_id: UUID, recipients: int, now: datetime) -> Script[None]:
    """Part of a transaction in which a mail was delivered to so many of its recipients, before it is forgotten."""
    mail = read_first(_Measured, (yield sql("select_measured_mail", mail_id)))
    if mail is not None and recipients:
        delivered = Delivered(mail.discipline, mail.lane, mail.admitted_at, recipients)
        yield from recording_deliveries([delivered], mail_id, now)


def _adding(times: Iterable[_Time], now: datetime, shard: int) -> Script[None]:
    """Sorted, so that two writers cannot deadlock."""
    counts: Counter[tuple[str, str, str, int]] = Counter()
    totals: Counter[tuple[str, str, str, int]] = Counter()
    for measure, discipline, lane, time_us, many in times:
        key = measure, discipline, lane, bucket_of(time_us)
        counts[key] += many
        totals[key] += many * time_us
    if counts:
        rows = [(*key, count, totals[key]) for key, count in sorted(counts.items())]
        yield sql("add_outbound_times", rows_text(rows), hour_of(now), shard)


@transaction
def prune_outbound_figures(now: datetime) -> Script[None]:
    """Forget figures that are too old."""
    yield sql("prune_outbound_figures", hour_of(now - KEEP))


class SenderService(NamedTuple):
    """The service that one sender got in a window, and where it belongs."""

    discipline: Discipline
    tenant_id: int
    domain_id: int
    sender_id: int
    mails: int
    recipients: int
    tenant_weight: float
    domain_weight: float
    sender_weight: float


@dataclass(frozen=True, slots=True)
class TimeCount:
    """How many times fell into a bucket in a window."""

    measure: TimeMeasure
    discipline: TimedDiscipline
    lane: TimedLane
    bucket: int
    count: int
    total_us: int


class WaitingLane(NamedTuple):
    """The mail that waits in a lane and is not held back, and since when the first of it has been due."""

    lane: Lane
    waiting: int
    oldest_due_at: datetime | None


class OutboundFigures(NamedTuple):
    """Everything that is known of a window, from one snapshot; and what waits now."""

    service: list[SenderService]
    times: list[TimeCount]
    waiting: list[WaitingLane]
    throttled_mail: int
    """Mail that waits since its sender is throttled."""
    throttles: ThrottleFigures


@query
def load_figures(since: datetime, until: datetime, now: datetime) -> Script[OutboundFigures]:
    """The hours that begin in the window. Throttles are those that began since its start."""
    window = (since, *(yield from folded_part("outbound", since, until)), until)
    service = read_rows(SenderService, (yield sql("select_outbound_service", *window)))
    times = read_rows(TimeCount, (yield sql("select_outbound_times", *window)))
    waiting = yield from waiting_lanes.script()
    throttled_mail = (yield from held_by_throttles.script(now)).mail
    throttles = yield from throttle_figures.script(since, now)
    return OutboundFigures(service, times, waiting, throttled_mail, throttles)


class HeldByThrottles(NamedTuple):
    senders: int
    mail: int


@query
def held_by_throttles(now: datetime) -> Script[HeldByThrottles]:
    """The senders that a throttle holds back now, and their mail that waits for its end."""
    ((senders, mail),) = yield sql("select_held_by_throttles", now)
    return HeldByThrottles(senders, mail)


@query
def waiting_lanes() -> Script[list[WaitingLane]]:
    """The lanes in which mail waits. The cost grows with the number of senders whose mail waits, not with the mail."""
    rows = yield sql("select_waiting_lanes")
    return [WaitingLane(lane, waiting, as_optional_time(oldest)) for lane, waiting, oldest in rows]
