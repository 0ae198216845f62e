"""Pruning ended jobs with their steps, and nothing else."""

from datetime import timedelta

import asyncpg
import pytest

from postroom.core.jobs.job import Job
from postroom.jobs.prune import KEEP, RECEIPTS_FOR, Pruner
from postroom.store.engine.ids import new_id
from postroom.store.jobs import jobs as store
from postroom.store.jobs.job_steps import begin_step, steps_of
from support.store.dump import dump
from support.store.job_setup import JobSetup


async def _completed(setup: JobSetup) -> Job:
    job = await setup.claimed()
    await setup.database.run(begin_step(job, new_id(), "fetch", setup.clock()))
    await setup.finish(job)
    return job


async def test_what_ended_before_then_is_forgotten_with_its_steps(setup: JobSetup) -> None:
    old = await _completed(setup)
    then = setup.clock.forward(10)
    kept = await _completed(setup)
    assert await setup.database.run(store.prune("completed", then, 100)) == 1
    assert await setup.database.run(store.show_job(old.id)) is None
    assert await setup.database.run(steps_of(old.id)) == []
    assert len((await setup.show(kept.id)).steps) == 1


async def test_only_the_named_state_is_pruned(setup: JobSetup) -> None:
    await _completed(setup)
    await setup.fail(await setup.claimed())
    await setup.cancel((await setup.enqueue()).id)
    then = setup.clock.forward(10)
    for state in ("failed", "canceled", "completed"):
        assert await setup.database.run(store.prune(state, then, 100)) == 1
        assert state not in await setup.counts()


async def test_live_jobs_are_never_pruned_however_old(setup: JobSetup) -> None:
    await setup.claimed()
    await setup.enqueue()
    await setup.enqueue(not_before=setup.clock() + timedelta(seconds=1))
    before = await dump(setup.database)
    setup.clock.forward(10**9)
    for state in ("queued", "running", "completed", "failed", "canceled"):
        assert await setup.database.run(store.prune(state, setup.clock(), 100)) == 0
    assert await dump(setup.database) == before


async def test_no_more_are_pruned_at_once_than_asked_for(setup: JobSetup) -> None:
    for _ in range(5):
        await _completed(setup)
    then = setup.clock.forward(1)
    pruned = [await setup.database.run(store.prune("completed", then, 2)) for _ in range(4)]
    assert pruned == [2, 2, 1, 0]


async def test_a_retried_job_is_not_pruned_for_its_earlier_end(setup: JobSetup) -> None:
    job = await setup.claimed()
    await setup.fail(job)
    await setup.retry(job.id)
    assert await setup.database.run(store.prune("failed", setup.clock.forward(10), 100)) == 0
    assert await setup.state(job.id) == "queued"


@pytest.mark.parametrize(("state", "keep"), KEEP.items())
async def test_the_pruner_keeps_each_state_for_its_time(setup: JobSetup, state: str, keep: timedelta) -> None:
    job = await setup.claimed()
    match state:
        case "completed":
            await setup.finish(job)
        case "failed":
            await setup.fail(job)
        case _:
            await setup.cancel_claimed(job)
    pruner = Pruner(setup.database, clock=setup.clock)
    setup.clock.forward(keep.total_seconds())
    assert await pruner.tick() == 0
    setup.clock.forward(1)
    assert await pruner.tick() == 1
    assert await setup.counts() == {}


async def test_the_pruner_goes_on_until_nothing_old_is_left(setup: JobSetup) -> None:
    count = 1203
    await setup.accept(*(setup.new() for _ in range(count)))
    await setup.finish(*await setup.claim(count))
    setup.clock.forward(KEEP["completed"].total_seconds() + 1)
    assert await Pruner(setup.database, clock=setup.clock).tick() == count


async def test_receipts_are_forgotten_after_their_time(postgres_setup: JobSetup, emptied_postgres_url: str) -> None:
    """They bear the server's time: the pruner is given a clock that is ahead of it."""
    setup = postgres_setup
    connection = await asyncpg.connect(emptied_postgres_url)
    setup.clock.now = await connection.fetchval("SELECT now()")
    await setup.enqueue()
    pruner = Pruner(setup.database, clock=setup.clock)
    await pruner.tick()
    assert await connection.fetchval("SELECT count(*) FROM postroom.receipts") > 1
    setup.clock.forward(RECEIPTS_FOR.total_seconds() + 60)
    await setup.database.run(store.prune_receipts(setup.clock() - RECEIPTS_FOR))
    assert await connection.fetchval("SELECT count(*) FROM postroom.receipts") == 0
    await connection.close()
