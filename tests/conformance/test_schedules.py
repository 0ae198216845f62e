"""Recurring jobs: stored, due, started once per tick."""

import asyncio
from datetime import datetime, timedelta

from postroom.store.engine.database import Database
from postroom.store.jobs import jobs as store
from postroom.store.jobs import schedules
from postroom.store.jobs.schedules import Schedule
from support.patience import PATIENCE_S
from support.store.dump import dump
from support.store.job_setup import JobSetup, listen

HOUR = timedelta(hours=1)


def _hourly(next_at: datetime, name: str = "labels", cron: str = "0 * * * *", priority: int = 2) -> Schedule:
    return Schedule(name, cron, "plain", '{"account":1}', priority, next_at)


async def _keep(setup: JobSetup, *kept: Schedule) -> None:
    await setup.database.run(schedules.keep_schedules(kept))


async def _due(setup: JobSetup) -> list[Schedule]:
    return await setup.database.run(schedules.due_schedules(setup.clock()))


async def test_a_schedule_is_due_at_its_time_and_not_before(setup: JobSetup) -> None:
    schedule = _hourly(setup.clock() + HOUR)
    await _keep(setup, schedule)
    assert await setup.database.run(schedules.next_schedule()) == setup.clock() + HOUR
    setup.clock.forward(HOUR.total_seconds() - 0.000001)
    assert await _due(setup) == []
    setup.clock.forward(0.000001)
    assert await _due(setup) == [schedule]


async def test_without_schedules_there_is_no_next_time(setup: JobSetup) -> None:
    assert await setup.database.run(schedules.next_schedule()) is None


async def test_a_tick_moves_the_schedule_and_enqueues_its_job(setup: JobSetup) -> None:
    schedule = _hourly(setup.clock())
    await _keep(setup, schedule)
    job = setup.new(priority=2)
    fired = await setup.database.run(schedules.fire(schedule, [job], setup.clock() + HOUR, setup.clock()))
    assert fired == [(job.id, False)]
    assert await _due(setup) == []
    assert await setup.database.run(schedules.next_schedule()) == setup.clock() + HOUR
    assert (await setup.claim_one()).id == job.id


async def test_a_tick_fires_once_even_when_two_try_at_once(setup: JobSetup, second_database: Database) -> None:
    for n in range(10):
        schedule = _hourly(setup.clock(), f"tick-{n}")
        await _keep(setup, schedule)
        later = setup.clock() + HOUR
        answers = await asyncio.gather(
            *(
                side.run(schedules.fire(schedule, [setup.new()], later, setup.clock()))
                for side in (setup.database, second_database, setup.database)
            )
        )
        assert sum(answer is not None for answer in answers) == 1
    assert await setup.counts() == {"queued": 10}


async def test_a_tick_that_has_been_fired_changes_nothing(setup: JobSetup) -> None:
    schedule = _hourly(setup.clock())
    await _keep(setup, schedule)
    await setup.database.run(schedules.fire(schedule, [setup.new()], setup.clock() + HOUR, setup.clock()))
    before = await dump(setup.database)
    again = schedules.fire(schedule, [setup.new(key="again")], setup.clock() + 2 * HOUR, setup.clock())
    assert await setup.database.run(again) is None
    assert await dump(setup.database) == before


async def test_a_tick_whose_last_job_still_lives_says_so_and_moves_on(setup: JobSetup) -> None:
    schedule = _hourly(setup.clock())
    await _keep(setup, schedule)
    live = await setup.enqueue("sync", key="recurring:labels")
    job = setup.new("sync", key="recurring:labels")
    fired = await setup.database.run(schedules.fire(schedule, [job], setup.clock() + HOUR, setup.clock()))
    assert fired == [(live.id, True)]
    assert await _due(setup) == []
    assert await setup.counts() == {"queued": 1}


async def test_a_tick_wakes_workers(setup: JobSetup) -> None:
    schedule = _hourly(setup.clock())
    await _keep(setup, schedule)
    heard = await listen(setup.database, store.CHANNEL)
    await setup.database.run(schedules.fire(schedule, [setup.new(priority=2)], setup.clock() + HOUR, setup.clock()))
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == "2"


async def test_a_schedule_with_the_same_expression_keeps_its_next_time(setup: JobSetup) -> None:
    """So a restart neither skips a tick nor fires one twice."""
    await _keep(setup, _hourly(setup.clock() + HOUR))
    await _keep(setup, _hourly(setup.clock() + 2 * HOUR, priority=5))
    setup.clock.forward(HOUR.total_seconds())
    assert await _due(setup) == [_hourly(setup.clock(), priority=5)]


async def test_a_schedule_with_a_new_expression_begins_again(setup: JobSetup) -> None:
    await _keep(setup, _hourly(setup.clock() + HOUR))
    await _keep(setup, _hourly(setup.clock() + 2 * HOUR, cron="0 */2 * * *"))
    assert await setup.database.run(schedules.next_schedule()) == setup.clock() + 2 * HOUR


async def test_a_schedule_that_is_no_longer_wanted_is_gone(setup: JobSetup) -> None:
    await _keep(setup, _hourly(setup.clock(), "old"), _hourly(setup.clock(), "kept"))
    await _keep(setup, _hourly(setup.clock(), "kept"), _hourly(setup.clock(), "new"))
    assert [schedule.name for schedule in await _due(setup)] == ["kept", "new"]
    await _keep(setup)
    assert await _due(setup) == []


async def test_two_that_keep_the_same_schedules_at_once_agree(setup: JobSetup, second_database: Database) -> None:
    kept = [_hourly(setup.clock(), name) for name in ("a", "b", "c")]
    await asyncio.gather(
        setup.database.run(schedules.keep_schedules(kept)),
        second_database.run(schedules.keep_schedules(kept[::-1])),
    )
    assert [schedule.name for schedule in await _due(setup)] == ["a", "b", "c"]
