"""Recurring jobs: when each fires next. Firing moves the schedule and enqueues the job in one transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from postroom.core.jobs.job import Enqueued, NewJob
from postroom.store.engine.codecs import as_optional_time
from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.engine.filling import fill
from postroom.store.engine.reading import read_rows
from postroom.store.jobs.jobs import enqueue_many


@dataclass(frozen=True, slots=True)
class Schedule:
    """A stored recurring job."""

    name: str
    cron: str
    type: str
    payload_json: str
    priority: int
    next_at: datetime


@transaction
def keep_schedules(schedules: Sequence[Schedule]) -> Script[None]:
    """Replace all schedules with these. One whose cron expression is unchanged keeps its next time,
    unless that is later than the expression allows: then a clock ahead has written it."""
    names = {schedule.name for schedule in schedules}
    kept = yield sql("select_schedule_names")
    for (name,) in kept:
        if name not in names:
            yield sql("delete_schedule", name)
    for each in schedules:
        yield fill("upsert_schedule", each)


@query
def due_schedules(now: datetime) -> Script[list[Schedule]]:
    return read_rows(Schedule, (yield sql("select_due_schedules", now)))


@query
def next_schedule() -> Script[datetime | None]:
    """When the next recurring job fires."""
    rows = yield sql("select_next_schedule")
    return as_optional_time(rows[0][0])


@transaction
def fire(schedule: Schedule, jobs: Sequence[NewJob], next_at: datetime, now: datetime) -> Script[list[Enqueued] | None]:
    """Fire one tick: enqueue its jobs. None if another process has fired it."""
    moved = yield sql("move_schedule", schedule.name, schedule.next_at, next_at)
    if not moved:
        return None
    return (yield from enqueue_many.script(jobs, now))
