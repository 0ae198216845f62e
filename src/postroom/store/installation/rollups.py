"""Counts by hour, written in the transaction of what they count, so that they survive restarts and are exact."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from postroom.store.engine.codecs import rows_text
from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.engine.reading import read_rows
from postroom.store.installation.figure_folds import STEPS, folded_part

SHARDS = 8
NO_BUCKET = -1


Measure = Literal["accepted", "duplicate", "wait", "ended", "decision", "rule", "outcome", "override", "job"]


class Count(NamedTuple):
    """One event. Waits have their milliseconds, and the next higher power of two as bucket.

    `times` is -1 for what was counted before and no longer holds. It is taken off the hour in which that became known,
    for earlier ones may be summed up already: windows with both hours are exact.
    """

    measure: Measure
    queue: str
    name: str
    endpoint_identity: str = ""
    bucket: int = NO_BUCKET
    total_ms: int = 0
    times: int = 1


@dataclass(frozen=True, slots=True)
class HourCount:
    """How often it happened in one hour."""

    hour: datetime
    queue: str
    name: str
    endpoint_identity: str
    bucket: int
    count: int
    total_ms: int


def waited(queue: str, tier: str, wait: timedelta) -> Count:
    ms = max(0, int(wait / timedelta(milliseconds=1)))
    return Count("wait", queue, tier, bucket=ms.bit_length(), total_ms=ms)


def adding(counts: Iterable[Count], now: datetime, writer: int) -> Script[None]:
    """Part of a transaction: add the counts to the hour. `writer` can be any number; different ones seldom collide."""
    rows = summed(counts)
    if rows:
        yield sql("add_rollups", rows_text(rows), hour_of(now), writer % SHARDS)


def hour_of(now: datetime) -> datetime:
    return now.replace(minute=0, second=0, microsecond=0)


def summed(counts: Iterable[Count]) -> list[tuple[object, ...]]:
    """One row per distinct count, sorted so that two writers cannot deadlock."""
    sums: defaultdict[tuple[str, str, str, str, int], list[int]] = defaultdict(lambda: [0, 0])
    for measure, queue, name, endpoint_identity, bucket, total_ms, times in counts:
        both = sums[measure, queue, name, endpoint_identity, bucket]
        both[0] += times
        both[1] += total_ms
    return [(*key, *both) for key, both in sorted(sums.items())]


@query
def hourly(measure: str, since: datetime, until: datetime) -> Script[list[HourCount]]:
    """The hours that begin in the window, oldest first."""
    return read_rows(HourCount, (yield sql("sum_rollups", measure, since, until)))


@query
def by_span(measure: str, since: datetime, until: datetime, step: timedelta) -> Script[list[HourCount]]:
    """The same, summed up to spans of `step` from `since` on; `hour` is where a span begins.

    Of a long window, few rows are read: the spans should begin where six hours of the day do.
    """
    begin, end = (yield from folded_part("rollups", since, until)) if step >= STEPS["rollups"] else (since, since)
    rows = yield sql("sum_rollups_by_span", measure, since, begin, end, until, round(step.total_seconds()))
    return [HourCount(since + place * step, *rest) for place, *rest in rows]


@transaction
def prune_rollups(before: datetime) -> Script[int]:
    return len((yield sql("prune_rollups", before)))
