"""The scheduler: wakes due jobs, starts recurring ones once per tick, and makes up for missed ticks once."""

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from postroom.core.errors import BadInput, UnknownJobType
from postroom.core.jobs.job import NewJob
from postroom.jobs.schedule import WAKE_BATCH, Recurring, Scheduler, next_tick
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.jobs import jobs as store
from support.store.job_setup import TYPES, JobSetup

HOURLY = Recurring("labels", "0 * * * *", "other", {"account": 1}, 3)


def _scheduler(setup: JobSetup, *recurring: Recurring) -> Scheduler:
    return Scheduler(setup.database, TYPES, recurring, setup.clock)


async def test_due_jobs_are_woken_and_the_next_time_is_reported(setup: JobSetup) -> None:
    times = [setup.clock() + timedelta(seconds=seconds) for seconds in (5, 10, 15)]
    for time in times:
        await setup.enqueue(not_before=time)
    scheduler = _scheduler(setup)
    assert await scheduler.tick() == times[0]
    setup.clock.forward(10)
    assert await scheduler.tick() == times[2]
    assert len(await setup.claim()) == 2
    setup.clock.forward(5)
    assert await scheduler.tick() is None


async def test_more_due_jobs_than_one_batch_are_all_woken(setup: JobSetup) -> None:
    count = WAKE_BATCH + 7
    await setup.accept(*(setup.new(not_before=setup.clock() + timedelta(seconds=1)) for _ in range(count)))
    setup.clock.forward(1)
    assert await _scheduler(setup).tick() is None
    assert len(await setup.claim(2 * count)) == count


async def test_a_recurring_job_fires_once_per_tick(setup: JobSetup) -> None:
    scheduler = _scheduler(setup, HOURLY)
    await scheduler.begin()
    for _ in range(3):
        due = await scheduler.tick()
        assert due == setup.clock() + timedelta(hours=1)
        setup.clock.forward(3600)
        await scheduler.tick()
        await scheduler.tick()
        (job,) = await setup.claim()
        assert (job.type, job.payload, job.priority) == ("other", {"account": 1}, 3)
        await setup.finish(job)


async def test_a_recurring_job_of_accounts_fires_for_each_account_in_use(setup: JobSetup) -> None:
    def job_of(account_id: UUID) -> NewJob:
        return setup.new("sync", key=f"sync:{account_id}", payload={"account_id": str(account_id)})

    async def accounts_in_use() -> list[UUID]:
        return ids

    ids: list[UUID] = []
    recurring = Recurring("mailboxes", "0 * * * *", "sync", each_account=job_of)
    scheduler = Scheduler(setup.database, TYPES, [recurring], setup.clock, accounts_in_use)
    await scheduler.begin()
    setup.clock.forward(3600)
    assert await scheduler.tick() == setup.clock() + timedelta(hours=1)
    assert await setup.counts() == {}
    ids += [new_id(), new_id()]
    for _ in range(2):
        setup.clock.forward(3600)
        await scheduler.tick()
    claimed = await setup.claim()
    assert {each.payload["account_id"] for each in claimed} == set(map(str, ids))
    assert len(claimed) == 2, "one that still waits is enough"


async def test_ticks_that_were_missed_are_made_up_for_once(setup: JobSetup) -> None:
    scheduler = _scheduler(setup, HOURLY)
    await scheduler.begin()
    setup.clock.forward(10.5 * 3600)
    assert await scheduler.tick() == setup.clock() + timedelta(hours=0.5)
    assert len(await setup.claim()) == 1


async def test_a_restart_neither_skips_a_tick_nor_fires_it_twice(setup: JobSetup) -> None:
    await _scheduler(setup, HOURLY).begin()
    setup.clock.forward(3600)
    again = _scheduler(setup, HOURLY)
    await again.begin()
    await again.tick()
    assert len(await setup.claim()) == 1
    await again.begin()
    await again.tick()
    assert await setup.claim() == []


async def test_two_schedulers_that_tick_at_once_fire_once(setup: JobSetup, second_database: Database) -> None:
    sides = [_scheduler(setup, HOURLY), Scheduler(second_database, TYPES, [HOURLY], setup.clock)]
    await asyncio.gather(*(side.begin() for side in sides))
    for _ in range(5):
        setup.clock.forward(3600)
        await asyncio.gather(*(side.tick() for side in sides))
        assert len(await setup.claim()) == 1


async def test_a_recurring_job_that_still_lives_is_not_doubled(setup: JobSetup) -> None:
    scheduler = _scheduler(setup, Recurring("sync", "* * * * *", "sync"))
    await scheduler.begin()
    for _ in range(3):
        setup.clock.forward(60)
        await scheduler.tick()
    (job,) = await setup.claim()
    await setup.finish(job)
    setup.clock.forward(60)
    await scheduler.tick()
    assert len(await setup.claim()) == 1


async def test_a_recurring_job_of_a_type_with_keys_for_good_may_run_beside_the_last_one(setup: JobSetup) -> None:
    scheduler = _scheduler(setup, Recurring("plain", "* * * * *", "plain"))
    await scheduler.begin()
    for _ in range(3):
        setup.clock.forward(60)
        await scheduler.tick()
    assert len(await setup.claim()) == 3


async def test_a_recurring_job_that_this_version_no_longer_has_does_not_fire(setup: JobSetup) -> None:
    await _scheduler(setup, HOURLY).begin()
    scheduler = _scheduler(setup)
    await scheduler.begin()
    setup.clock.forward(3600)
    assert await scheduler.tick() is None
    assert await setup.counts() == {}


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
    setup: JobSetup, recurring: Recurring, error: type[BadInput], field: str
) -> None:
    with pytest.raises(error) as refused:
        await _scheduler(setup, HOURLY, recurring).begin()
    assert refused.value.field == field
    assert await _scheduler(setup).tick() is None


def test_the_next_tick_is_strictly_later_and_in_utc() -> None:
    noon = datetime(2026, 3, 29, 12, tzinfo=UTC)
    assert next_tick("0 * * * *", noon) == noon + timedelta(hours=1)
    assert next_tick("0 * * * *", noon + timedelta(microseconds=1)) == noon + timedelta(hours=1)


async def test_a_canceled_recurring_job_fires_again_at_the_next_tick(setup: JobSetup) -> None:
    scheduler = _scheduler(setup, Recurring("sync", "* * * * *", "sync"))
    await scheduler.begin()
    setup.clock.forward(60)
    await scheduler.tick()
    (listed,) = await setup.database.run(store.list_jobs())
    await setup.cancel(listed.id)
    setup.clock.forward(60)
    await scheduler.tick()
    assert len(await setup.claim()) == 1
