"""Forgetting what ended long ago, with its steps, and nothing else."""

from datetime import timedelta

import asyncpg
import pytest

from conformance.desk import Desk
from conformance.dump import dump
from postroom.core.jobs.job import Job
from postroom.jobs.prune import KEEP, RECEIPTS_FOR, Pruner
from postroom.store import jobs as store
from postroom.store.engine.ids import new_id
from postroom.store.job_steps import begin_step, steps_of


async def _completed(desk: Desk) -> Job:
    job = await desk.claimed()
    await desk.database.run(begin_step(job, new_id(), "fetch", desk.clock()))
    await desk.finish(job)
    return job


async def test_what_ended_before_then_is_forgotten_with_its_steps(desk: Desk) -> None:
    old = await _completed(desk)
    then = desk.clock.forward(10)
    kept = await _completed(desk)
    assert await desk.database.run(store.prune("completed", then, 100)) == 1
    assert await desk.database.run(store.show_job(old.id)) is None
    assert await desk.database.run(steps_of(old.id)) == []
    assert len((await desk.show(kept.id)).steps) == 1


async def test_only_the_named_state_is_pruned(desk: Desk) -> None:
    await _completed(desk)
    await desk.fail(await desk.claimed())
    await desk.cancel((await desk.enqueue()).id)
    then = desk.clock.forward(10)
    for state in ("failed", "canceled", "completed"):
        assert await desk.database.run(store.prune(state, then, 100)) == 1
        assert state not in await desk.counts()


async def test_live_jobs_are_never_pruned_however_old(desk: Desk) -> None:
    await desk.claimed()
    await desk.enqueue()
    await desk.enqueue(not_before=desk.clock() + timedelta(seconds=1))
    before = await dump(desk.database)
    desk.clock.forward(10**9)
    for state in ("queued", "running", "completed", "failed", "canceled"):
        assert await desk.database.run(store.prune(state, desk.clock(), 100)) == 0
    assert await dump(desk.database) == before


async def test_no_more_are_pruned_at_once_than_asked_for(desk: Desk) -> None:
    for _ in range(5):
        await _completed(desk)
    then = desk.clock.forward(1)
    pruned = [await desk.database.run(store.prune("completed", then, 2)) for _ in range(4)]
    assert pruned == [2, 2, 1, 0]


async def test_a_retried_job_is_not_pruned_for_its_earlier_end(desk: Desk) -> None:
    job = await desk.claimed()
    await desk.fail(job)
    await desk.retry(job.id)
    assert await desk.database.run(store.prune("failed", desk.clock.forward(10), 100)) == 0
    assert await desk.state(job.id) == "queued"


@pytest.mark.parametrize(("state", "keep"), KEEP.items())
async def test_the_pruner_keeps_each_state_for_its_time(desk: Desk, state: str, keep: timedelta) -> None:
    job = await desk.claimed()
    match state:
        case "completed":
            await desk.finish(job)
        case "failed":
            await desk.fail(job)
        case _:
            await desk.cancel_claimed(job)
    pruner = Pruner(desk.database, clock=desk.clock)
    desk.clock.forward(keep.total_seconds())
    assert await pruner.tick() == 0
    desk.clock.forward(1)
    assert await pruner.tick() == 1
    assert await desk.counts() == {}


async def test_the_pruner_goes_on_until_nothing_old_is_left(desk: Desk) -> None:
    count = 1203
    await desk.accept(*(desk.new() for _ in range(count)))
    await desk.finish(*await desk.claim(count))
    desk.clock.forward(KEEP["completed"].total_seconds() + 1)
    assert await Pruner(desk.database, clock=desk.clock).tick() == count


async def test_receipts_are_forgotten_after_their_time(postgres_desk: Desk, emptied_postgres_url: str) -> None:
    """They bear the server's time: the pruner is given a clock that is ahead of it."""
    desk = postgres_desk
    connection = await asyncpg.connect(emptied_postgres_url)
    desk.clock.now = await connection.fetchval("SELECT now()")
    await desk.enqueue()
    pruner = Pruner(desk.database, clock=desk.clock)
    await pruner.tick()
    assert await connection.fetchval("SELECT count(*) FROM postroom.receipts") > 1
    desk.clock.forward(RECEIPTS_FOR.total_seconds() + 60)
    await desk.database.run(store.prune_receipts(desk.clock() - RECEIPTS_FOR))
    assert await connection.fetchval("SELECT count(*) FROM postroom.receipts") == 0
    await connection.close()
