"""Leadership: one of many leads, hands over when it stops, and is replaced if it dies."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from datetime import timedelta

import pytest

from postroom.core.errors import DatabaseUnavailable
from postroom.jobs.leadership import NAME, Leadership
from postroom.jobs.prune import KEEP, Pruner
from postroom.jobs.rescue import Rescuer
from postroom.jobs.schedule import Recurring, Scheduler
from postroom.store.engine.database import Database
from postroom.store.jobs import leaders
from postroom.system.boot_clock import BootClock, since_boot
from support.patience import PATIENCE_S
from support.store.job_setup import TYPES, JobSetup
from support.store.running_worker import HookedDatabase, until

LEASE = timedelta(milliseconds=30)  # the pauses between tries follow from it; the lease itself, from the test's clock
HOURLY = Recurring("hourly", "0 * * * *", "plain")


@contextlib.asynccontextmanager
async def _candidate(
    setup: JobSetup,
    database: Database | None = None,
    boot: BootClock | None = None,
    poll: timedelta = timedelta(milliseconds=5),
) -> AsyncGenerator[Leadership]:
    database = database or setup.database
    leadership = Leadership(
        database,
        Scheduler(database, TYPES, [HOURLY], setup.clock),
        Rescuer(database, setup.clock),
        Pruner(database, KEEP, setup.clock),
        LEASE,
        poll,
        setup.clock,
        boot=boot or (lambda: setup.clock().timestamp()),
    )
    task = asyncio.create_task(leadership.run())
    try:
        yield leadership
    finally:
        leadership.stop()
        await asyncio.wait_for(task, PATIENCE_S)


async def test_of_several_exactly_one_leads(setup: JobSetup, second_database: Database) -> None:
    meddlers = [HookedDatabase(setup.database), HookedDatabase(second_database), HookedDatabase(setup.database)]
    async with (
        _candidate(setup, meddlers[0]) as first,
        _candidate(setup, meddlers[1]) as second,
        _candidate(setup, meddlers[2]) as third,
    ):
        candidates = (first, second, third)
        await until(lambda: all(meddler.seen.count("lead") > 2 for meddler in meddlers if not _leads(meddler)))
        assert sum(each.leads for each in candidates) == 1


def _leads(meddler: HookedDatabase) -> bool:
    return "keep_schedules" in meddler.seen


async def test_a_leader_that_stops_hands_over(setup: JobSetup) -> None:
    async with _candidate(setup) as first:
        await until(lambda: first.leads)
        async with _candidate(setup) as second:
            assert not second.leads
            first.stop()
            await until(lambda: second.leads)
            assert not first.leads


async def test_a_dead_leader_is_replaced_when_its_lease_has_run_out_and_not_before(setup: JobSetup) -> None:
    until_then = setup.clock() + timedelta(seconds=15)
    assert await setup.database.run(leaders.lead(NAME, "dead", setup.clock(), until_then))
    meddler = HookedDatabase(setup.database)
    async with _candidate(setup, meddler) as candidate:
        await until(lambda: meddler.seen.count("lead") > 3)
        assert not candidate.leads
        setup.clock.forward(16)
        await until(lambda: candidate.leads)


async def test_the_leader_wakes_fires_rescues_and_prunes(setup: JobSetup) -> None:
    old = await setup.claimed()
    await setup.finish(old)
    lost = await setup.claimed()
    sleeper = await setup.enqueue(not_before=setup.clock() + timedelta(seconds=30))
    async with _candidate(setup) as leader:
        await until(lambda: leader.leads)
        setup.clock.forward(KEEP["completed"].total_seconds() + 1)

        async def all_done() -> bool:
            counts = await setup.counts()
            return counts == {"queued": 3}

        await until(all_done)
    shown = {job.id: job for job in await setup.claim(token=await setup.open_lease())}
    assert {lost.id, sleeper.id} < set(shown)


async def test_a_job_that_falls_asleep_while_the_leader_looks_for_the_next_is_woken_in_time(setup: JobSetup) -> None:
    """Nothing else tells of it: the leader looks again after the poll interval, which is long."""
    meddler = HookedDatabase(setup.database)
    announced = asyncio.Event()

    async def enqueue() -> None:
        await setup.enqueue(not_before=setup.clock() + timedelta(seconds=1))
        await asyncio.wait_for(announced.wait(), PATIENCE_S)
        setup.clock.forward(1)

    meddler.before["next_schedule"] = enqueue
    async with _candidate(setup, meddler, poll=timedelta(hours=1)):
        subscription = setup.database.subscribe("scheduler", lambda _message: announced.set())
        await until(lambda: _is_claimable(setup))
        subscription.close()


async def test_a_leader_survives_a_database_in_trouble(setup: JobSetup) -> None:
    meddler = HookedDatabase(setup.database)

    async def fail() -> None:
        raise DatabaseUnavailable("away for a moment")

    async with _candidate(setup, meddler) as leader:
        await until(lambda: leader.leads)
        meddler.before["wake_due"] = fail
        await until(lambda: "wake_due" not in meddler.before)
        before = len(meddler.seen)
        await until(lambda: leader.leads and "wake_due" in meddler.seen[before:])


async def test_a_clock_that_was_an_hour_ahead_leaves_nobody_without_a_leader(setup: JobSetup) -> None:
    """The leader died while it was ahead; then it was put right."""
    setup.clock.forward(3600)
    assert await setup.database.run(leaders.lead(NAME, "dead", setup.clock(), setup.clock() + LEASE))
    setup.clock.forward(-3600)
    meddler = HookedDatabase(setup.database)
    async with _candidate(setup, meddler) as candidate:
        await until(lambda: meddler.seen.count("lead") > 3)
        assert not candidate.leads, "the lease is cut to its length, and not ignored: its owner may live"
        setup.clock.forward(LEASE.total_seconds() + 0.001)
        await until(lambda: candidate.leads)


@pytest.mark.parametrize("hours", [-1, 1])
async def test_a_leader_goes_on_leading_and_working_while_the_wall_clock_jumps(setup: JobSetup, hours: int) -> None:
    """What it does every few seconds it goes on doing, and what waits since a time yet to come waits no more."""
    meddler = HookedDatabase(setup.database)
    async with _candidate(setup, meddler, since_boot) as leader:
        await until(lambda: leader.leads)
        waiting = await setup.claimed()
        await setup.retry_later(waiting, seconds=10)
        setup.clock.forward(3600 * hours)
        renewed = meddler.seen.count("lead")
        await until(lambda: meddler.seen.count("lead") > renewed + 2 and leader.leads)
        leader_row = await setup.database.run(leaders.leader(NAME))
        assert leader_row is not None
        assert leader_row[1] <= setup.clock() + LEASE

        async def is_due() -> bool:
            return (await setup.show(waiting.id)).not_before is None or await _is_claimable(setup)

        await until(is_due)


async def _is_claimable(setup: JobSetup) -> bool:
    return bool(await setup.claim(token=await setup.open_lease()))
