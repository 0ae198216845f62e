"""The scheduler: wakes what sleeps, fires what recurs, once per tick, and makes up for missed ticks once."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from conformance.desk import TYPES, Desk
from postroom.core.errors import BadInput, UnknownJobType
from postroom.jobs.schedule import WAKE_BATCH, Recurring, Scheduler, next_tick
from postroom.store import jobs as store
from postroom.store.engine.database import Database

HOURLY = Recurring("labels", "0 * * * *", "other", {"account": 1}, 3)


def _scheduler(desk: Desk, *recurring: Recurring) -> Scheduler:
    return Scheduler(desk.database, TYPES, recurring, desk.clock)


async def test_due_jobs_are_woken_and_the_next_time_is_told(desk: Desk) -> None:
    times = [desk.clock() + timedelta(seconds=seconds) for seconds in (5, 10, 15)]
    for time in times:
        await desk.enqueue(not_before=time)
    scheduler = _scheduler(desk)
    assert await scheduler.tick() == times[0]
    desk.clock.forward(10)
    assert await scheduler.tick() == times[2]
    assert len(await desk.claim()) == 2
    desk.clock.forward(5)
    assert await scheduler.tick() is None


async def test_more_due_jobs_than_one_batch_are_all_woken(desk: Desk) -> None:
    count = WAKE_BATCH + 7
    await desk.accept(*(desk.new(not_before=desk.clock() + timedelta(seconds=1)) for _ in range(count)))
    desk.clock.forward(1)
    assert await _scheduler(desk).tick() is None
    assert len(await desk.claim(2 * count)) == count


async def test_a_recurring_job_fires_once_per_tick(desk: Desk) -> None:
    scheduler = _scheduler(desk, HOURLY)
    await scheduler.begin()
    for _ in range(3):
        due = await scheduler.tick()
        assert due == desk.clock() + timedelta(hours=1)
        desk.clock.forward(3600)
        await scheduler.tick()
        await scheduler.tick()
        (job,) = await desk.claim()
        assert (job.type, job.payload, job.priority) == ("other", {"account": 1}, 3)
        await desk.finish(job)


async def test_ticks_that_were_missed_are_made_up_for_once(desk: Desk) -> None:
    scheduler = _scheduler(desk, HOURLY)
    await scheduler.begin()
    desk.clock.forward(10.5 * 3600)
    assert await scheduler.tick() == desk.clock() + timedelta(hours=0.5)
    assert len(await desk.claim()) == 1


async def test_a_restart_neither_skips_a_tick_nor_fires_it_twice(desk: Desk) -> None:
    await _scheduler(desk, HOURLY).begin()
    desk.clock.forward(3600)
    again = _scheduler(desk, HOURLY)
    await again.begin()
    await again.tick()
    assert len(await desk.claim()) == 1
    await again.begin()
    await again.tick()
    assert await desk.claim() == []


async def test_two_schedulers_that_tick_at_once_fire_once(desk: Desk, second_database: Database) -> None:
    sides = [_scheduler(desk, HOURLY), Scheduler(second_database, TYPES, [HOURLY], desk.clock)]
    await asyncio.gather(*(side.begin() for side in sides))
    for _ in range(5):
        desk.clock.forward(3600)
        await asyncio.gather(*(side.tick() for side in sides))
        assert len(await desk.claim()) == 1


async def test_a_recurring_job_that_still_lives_is_not_doubled(desk: Desk) -> None:
    scheduler = _scheduler(desk, Recurring("sync", "* * * * *", "sync"))
    await scheduler.begin()
    for _ in range(3):
        desk.clock.forward(60)
        await scheduler.tick()
    (job,) = await desk.claim()
    await desk.finish(job)
    desk.clock.forward(60)
    await scheduler.tick()
    assert len(await desk.claim()) == 1


async def test_a_recurring_job_of_a_type_with_keys_for_good_may_run_beside_the_last_one(desk: Desk) -> None:
    scheduler = _scheduler(desk, Recurring("plain", "* * * * *", "plain"))
    await scheduler.begin()
    for _ in range(3):
        desk.clock.forward(60)
        await scheduler.tick()
    assert len(await desk.claim()) == 3


async def test_a_recurring_job_that_this_version_no_longer_has_does_not_fire(desk: Desk) -> None:
    await _scheduler(desk, HOURLY).begin()
    scheduler = _scheduler(desk)
    await scheduler.begin()
    desk.clock.forward(3600)
    assert await scheduler.tick() is None
    assert await desk.counts() == {}


@pytest.mark.parametrize(
    ("recurring", "error", "field"),
    [
        (Recurring("bad", "every hour", "plain"), BadInput, "cron"),
        (Recurring("never", "0 0 30 2 *", "plain"), BadInput, "cron"),
        (Recurring("unknown", "* * * * *", "plane"), UnknownJobType, "type"),
    ],
    ids=lambda each: each.name if isinstance(each, Recurring) else "",
)
async def test_a_recurring_job_that_cannot_be_is_refused_and_nothing_is_kept(
    desk: Desk, recurring: Recurring, error: type[BadInput], field: str
) -> None:
    with pytest.raises(error) as refused:
        await _scheduler(desk, HOURLY, recurring).begin()
    assert refused.value.field == field
    assert await _scheduler(desk).tick() is None


def test_the_next_tick_is_strictly_later_and_in_utc() -> None:
    noon = datetime(2026, 3, 29, 12, tzinfo=UTC)
    assert next_tick("0 * * * *", noon) == noon + timedelta(hours=1)
    assert next_tick("0 * * * *", noon + timedelta(microseconds=1)) == noon + timedelta(hours=1)


async def test_a_canceled_recurring_job_fires_again_at_the_next_tick(desk: Desk) -> None:
    scheduler = _scheduler(desk, Recurring("sync", "* * * * *", "sync"))
    await scheduler.begin()
    desk.clock.forward(60)
    await scheduler.tick()
    (listed,) = await desk.database.run(store.list_jobs())
    await desk.cancel(listed.id)
    desk.clock.forward(60)
    await scheduler.tick()
    assert len(await desk.claim()) == 1
