"""Recurring jobs: kept, due, fired once per tick."""

import asyncio
from datetime import datetime, timedelta

from conformance.desk import Desk, listen
from conformance.dump import dump
from postroom.store import jobs as store
from postroom.store import schedules
from postroom.store.engine.database import Database
from postroom.store.schedules import Schedule
from support.patience import PATIENCE_S

HOUR = timedelta(hours=1)


def _hourly(next_at: datetime, name: str = "labels", cron: str = "0 * * * *", priority: int = 2) -> Schedule:
    return Schedule(name, cron, "plain", '{"account":1}', priority, next_at)


async def _keep(desk: Desk, *kept: Schedule) -> None:
    await desk.database.run(schedules.keep_schedules(kept))


async def _due(desk: Desk) -> list[Schedule]:
    return await desk.database.run(schedules.due_schedules(desk.clock()))


async def test_a_schedule_is_due_at_its_time_and_not_before(desk: Desk) -> None:
    schedule = _hourly(desk.clock() + HOUR)
    await _keep(desk, schedule)
    assert await desk.database.run(schedules.next_schedule()) == desk.clock() + HOUR
    desk.clock.forward(HOUR.total_seconds() - 0.000001)
    assert await _due(desk) == []
    desk.clock.forward(0.000001)
    assert await _due(desk) == [schedule]


async def test_without_schedules_there_is_no_next_time(desk: Desk) -> None:
    assert await desk.database.run(schedules.next_schedule()) is None


async def test_a_tick_moves_the_schedule_and_enqueues_its_job(desk: Desk) -> None:
    schedule = _hourly(desk.clock())
    await _keep(desk, schedule)
    job = desk.new(priority=2)
    fired = await desk.database.run(schedules.fire(schedule, job, desk.clock() + HOUR, desk.clock()))
    assert fired == (job.id, False)
    assert await _due(desk) == []
    assert await desk.database.run(schedules.next_schedule()) == desk.clock() + HOUR
    assert (await desk.claim_one()).id == job.id


async def test_a_tick_fires_once_even_when_two_try_at_once(desk: Desk, second_database: Database) -> None:
    for n in range(10):
        schedule = _hourly(desk.clock(), f"tick-{n}")
        await _keep(desk, schedule)
        later = desk.clock() + HOUR
        answers = await asyncio.gather(
            *(
                side.run(schedules.fire(schedule, desk.new(), later, desk.clock()))
                for side in (desk.database, second_database, desk.database)
            )
        )
        assert sum(answer is not None for answer in answers) == 1
    assert await desk.counts() == {"queued": 10}


async def test_a_tick_that_has_been_fired_changes_nothing(desk: Desk) -> None:
    schedule = _hourly(desk.clock())
    await _keep(desk, schedule)
    await desk.database.run(schedules.fire(schedule, desk.new(), desk.clock() + HOUR, desk.clock()))
    before = await dump(desk.database)
    again = schedules.fire(schedule, desk.new(key="again"), desk.clock() + 2 * HOUR, desk.clock())
    assert await desk.database.run(again) is None
    assert await dump(desk.database) == before


async def test_a_tick_whose_last_job_still_lives_says_so_and_moves_on(desk: Desk) -> None:
    schedule = _hourly(desk.clock())
    await _keep(desk, schedule)
    live = await desk.enqueue("sync", key="recurring:labels")
    job = desk.new("sync", key="recurring:labels")
    fired = await desk.database.run(schedules.fire(schedule, job, desk.clock() + HOUR, desk.clock()))
    assert fired == (live.id, True)
    assert await _due(desk) == []
    assert await desk.counts() == {"queued": 1}


async def test_a_tick_wakes_workers(desk: Desk) -> None:
    schedule = _hourly(desk.clock())
    await _keep(desk, schedule)
    heard = await listen(desk.database, store.CHANNEL)
    await desk.database.run(schedules.fire(schedule, desk.new(priority=2), desk.clock() + HOUR, desk.clock()))
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == "2"


async def test_a_schedule_with_the_same_expression_keeps_its_next_time(desk: Desk) -> None:
    """So a restart neither skips a tick nor fires one twice."""
    await _keep(desk, _hourly(desk.clock() + HOUR))
    await _keep(desk, _hourly(desk.clock() + 2 * HOUR, priority=5))
    desk.clock.forward(HOUR.total_seconds())
    assert await _due(desk) == [_hourly(desk.clock(), priority=5)]


async def test_a_schedule_with_a_new_expression_begins_anew(desk: Desk) -> None:
    await _keep(desk, _hourly(desk.clock() + HOUR))
    await _keep(desk, _hourly(desk.clock() + 2 * HOUR, cron="0 */2 * * *"))
    assert await desk.database.run(schedules.next_schedule()) == desk.clock() + 2 * HOUR


async def test_a_schedule_that_is_no_longer_wanted_is_gone(desk: Desk) -> None:
    await _keep(desk, _hourly(desk.clock(), "old"), _hourly(desk.clock(), "kept"))
    await _keep(desk, _hourly(desk.clock(), "kept"), _hourly(desk.clock(), "new"))
    assert [schedule.name for schedule in await _due(desk)] == ["kept", "new"]
    await _keep(desk)
    assert await _due(desk) == []


async def test_two_that_keep_the_same_schedules_at_once_agree(desk: Desk, second_database: Database) -> None:
    kept = [_hourly(desk.clock(), name) for name in ("a", "b", "c")]
    await asyncio.gather(
        desk.database.run(schedules.keep_schedules(kept)),
        second_database.run(schedules.keep_schedules(kept[::-1])),
    )
    assert [schedule.name for schedule in await _due(desk)] == ["a", "b", "c"]
