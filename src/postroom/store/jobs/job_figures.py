"""How many jobs of each type ended by hour, how, and after how long.

The ends are counted a little later and not in the transaction that ends a job, which is the busiest of all. What has
been counted, and until when, is written together: however often a count is interrupted, each end counts once.
"""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime

from postroom.core.lifecycle import JobState
from postroom.store.engine.codecs import as_time, rows_text
from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.engine.reading import read_rows


@dataclass(frozen=True, slots=True)
class EndedJobs:
    """Jobs of one type that ended alike in one hour. `bucket` is the power of two in ms above the time they took, from
    when they were due; a job that was tried again took all the time since it was enqueued.
    """

    hour: datetime
    type: str
    state: JobState
    bucket: int
    count: int
    total_ms: int


@query
def counted_until() -> Script[datetime | None]:
    rows = yield sql("select_counted_until")
    return as_time(rows[0][0]) if rows else None


@query
def ended_between(since: datetime, until: datetime) -> Script[list[EndedJobs]]:
    """Count the jobs that ended after `since`, up to `until`."""
    return read_rows(EndedJobs, (yield sql("count_ended_jobs", since, until)))


@transaction
def begin_counting(since: datetime) -> Script[None]:
    """Count what ends from then on, unless counting has begun."""
    yield sql("begin_counting", since)


@transaction
def keep_counts(since: datetime, until: datetime, found: list[EndedJobs]) -> Script[bool]:
    """Store the counts of a time that nobody has counted yet; False, and no change, if somebody has."""
    if not (yield sql("move_counting", since, until)):
        return False
    by_hour: defaultdict[datetime, list[tuple[object, ...]]] = defaultdict(list)
    for each in found:
        by_hour[each.hour].append(("job", each.state, each.type, "", each.bucket, each.count, each.total_ms))
    for hour, rows in by_hour.items():
        yield sql("add_rollups", rows_text(rows), hour, 0)
    return True
