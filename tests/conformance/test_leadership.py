"""Leadership: one of many leads, hands over when it stops, and is replaced when it dies."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from datetime import timedelta

import pytest

from conformance.desk import TYPES, Desk
from conformance.shop import Meddler, until
from postroom.core.errors import DatabaseUnavailable
from postroom.jobs.leadership import NAME, Leadership
from postroom.jobs.prune import KEEP, Pruner
from postroom.jobs.rescue import Rescuer
from postroom.jobs.schedule import Recurring, Scheduler
from postroom.store import leaders
from postroom.store.engine.database import Database
from postroom.system.boot_clock import BootClock, since_boot
from support.patience import PATIENCE_S

LEASE = timedelta(milliseconds=30)  # the pauses between tries follow from it; the lease itself, from the test's clock
HOURLY = Recurring("hourly", "0 * * * *", "plain")


@contextlib.asynccontextmanager
async def _candidate(
    desk: Desk, database: Database | None = None, boot: BootClock | None = None
) -> AsyncGenerator[Leadership]:
    database = database or desk.database
    leadership = Leadership(
        database,
        Scheduler(database, TYPES, [HOURLY], desk.clock),
        Rescuer(database, desk.clock),
        Pruner(database, KEEP, desk.clock),
        LEASE,
        timedelta(milliseconds=5),
        desk.clock,
        boot=boot or (lambda: desk.clock().timestamp()),
    )
    task = asyncio.create_task(leadership.run())
    try:
        yield leadership
    finally:
        leadership.stop()
        await asyncio.wait_for(task, PATIENCE_S)


async def test_of_several_exactly_one_leads(desk: Desk, second_database: Database) -> None:
    meddlers = [Meddler(desk.database), Meddler(second_database), Meddler(desk.database)]
    async with (
        _candidate(desk, meddlers[0]) as first,
        _candidate(desk, meddlers[1]) as second,
        _candidate(desk, meddlers[2]) as third,
    ):
        candidates = (first, second, third)
        await until(lambda: all(meddler.seen.count("lead") > 2 for meddler in meddlers if not _leads(meddler)))
        assert sum(each.leads for each in candidates) == 1


def _leads(meddler: Meddler) -> bool:
    return "keep_schedules" in meddler.seen


async def test_a_leader_that_stops_hands_over(desk: Desk) -> None:
    async with _candidate(desk) as first:
        await until(lambda: first.leads)
        async with _candidate(desk) as second:
            assert not second.leads
            first.stop()
            await until(lambda: second.leads)
            assert not first.leads


async def test_a_dead_leader_is_replaced_when_its_lease_has_run_out_and_not_before(desk: Desk) -> None:
    until_then = desk.clock() + timedelta(seconds=15)
    assert await desk.database.run(leaders.lead(NAME, "dead", desk.clock(), until_then))
    meddler = Meddler(desk.database)
    async with _candidate(desk, meddler) as candidate:
        await until(lambda: meddler.seen.count("lead") > 3)
        assert not candidate.leads
        desk.clock.forward(16)
        await until(lambda: candidate.leads)


async def test_the_leader_wakes_fires_rescues_and_prunes(desk: Desk) -> None:
    old = await desk.claimed()
    await desk.finish(old)
    lost = await desk.claimed()
    sleeper = await desk.enqueue(not_before=desk.clock() + timedelta(seconds=30))
    async with _candidate(desk) as leader:
        await until(lambda: leader.leads)
        desk.clock.forward(KEEP["completed"].total_seconds() + 1)

        async def all_done() -> bool:
            counts = await desk.counts()
            return counts == {"queued": 3}

        await until(all_done)
    shown = {job.id: job for job in await desk.claim(token=await desk.open_lease())}
    assert {lost.id, sleeper.id} < set(shown)


async def test_a_leader_survives_a_database_in_trouble(desk: Desk) -> None:
    meddler = Meddler(desk.database)

    async def fail() -> None:
        raise DatabaseUnavailable("away for a moment")

    async with _candidate(desk, meddler) as leader:
        await until(lambda: leader.leads)
        meddler.before["wake_due"] = fail
        await until(lambda: "wake_due" not in meddler.before)
        before = len(meddler.seen)
        await until(lambda: leader.leads and "wake_due" in meddler.seen[before:])


async def test_a_clock_that_was_an_hour_ahead_leaves_nobody_without_a_leader(desk: Desk) -> None:
    """The leader died while it was ahead; then it was put right."""
    desk.clock.forward(3600)
    assert await desk.database.run(leaders.lead(NAME, "dead", desk.clock(), desk.clock() + LEASE))
    desk.clock.forward(-3600)
    meddler = Meddler(desk.database)
    async with _candidate(desk, meddler) as candidate:
        await until(lambda: meddler.seen.count("lead") > 3)
        assert not candidate.leads, "the lease is cut to its length, and not ignored: its owner may live"
        desk.clock.forward(LEASE.total_seconds() + 0.001)
        await until(lambda: candidate.leads)


@pytest.mark.parametrize("hours", [-1, 1])
async def test_a_leader_goes_on_leading_and_working_while_the_wall_clock_jumps(desk: Desk, hours: int) -> None:
    """What it does every few seconds it goes on doing, and what waits since a time yet to come waits no more."""
    meddler = Meddler(desk.database)
    async with _candidate(desk, meddler, since_boot) as leader:
        await until(lambda: leader.leads)
        waiting = await desk.claimed()
        await desk.retry_later(waiting, seconds=10)
        desk.clock.forward(3600 * hours)
        renewed = meddler.seen.count("lead")
        await until(lambda: meddler.seen.count("lead") > renewed + 2 and leader.leads)
        leader_row = await desk.database.run(leaders.leader(NAME))
        assert leader_row is not None
        assert leader_row[1] <= desk.clock() + LEASE

        async def is_due() -> bool:
            return (await desk.show(waiting.id)).not_before is None or await _is_claimable(desk)

        await until(is_due)


async def _is_claimable(desk: Desk) -> bool:
    return bool(await desk.claim(token=await desk.open_lease()))
