"""Low-water marks on PostgreSQL: they rise, and no job that can be claimed is ever below one."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from postroom.core.jobs.job import Job
from postroom.jobs.marks import MarkKeeper
from postroom.store.engine.ids import new_id
from postroom.store.jobs.job_marks import advance, still_open, watch_inserts
from support.patience import PATIENCE_S
from support.scale import scale
from support.store.job_setup import JobSetup

BATCH = 1000


@pytest.fixture
def setup(postgres_setup: JobSetup) -> JobSetup:
    return postgres_setup


@pytest.fixture
async def other(emptied_postgres_url: str) -> Any:
    """A connection of someone who holds a transaction open."""
    connection = await asyncpg.connect(emptied_postgres_url, server_settings={"search_path": "postroom"})
    yield connection
    await connection.close()


async def _insert(other: asyncpg.Connection, setup: JobSetup, priority: int = 0) -> int:
    """A job, as an enqueue inserts it, on the other connection."""
    seq = await other.fetchval(
        "INSERT INTO job_bodies (id, type, payload_json, priority, max_attempts, releases_key, created_at) "
        "VALUES ($1, 'plain', '{}', $2, 3, false, $3) RETURNING seq",
        new_id(),
        priority,
        setup.clock(),
    )
    await other.execute(
        "INSERT INTO job_queue (seq, priority, state, ready, max_attempts, updated_at) "
        "VALUES ($1, $2, 'queued', true, 3, $3)",
        seq,
        priority,
        setup.clock(),
    )
    return seq


async def _low(other: asyncpg.Connection, priority: int = 0) -> int:
    return await other.fetchval("SELECT low FROM job_marks WHERE priority = $1", priority)


async def _pass(setup: JobSetup, count: int, keeper: MarkKeeper | None = None) -> None:
    """Jobs come, are claimed and finished."""
    for _ in range(count // BATCH):
        await setup.accept(*(setup.new() for _ in range(BATCH)))
        jobs = await setup.claim(BATCH)
        assert await setup.finish(*jobs) == {job.seq for job in jobs}
        if keeper is not None:
            keeper.claimed += len(jobs)
            if keeper.due:
                await keeper.advance()


async def _raise_marks(setup: JobSetup) -> None:
    """As far as they can be raised now."""
    watch = await setup.database.run(watch_inserts())
    assert not await setup.database.run(still_open(watch))
    await setup.database.run(advance(watch.bound))


async def test_marks_rise_as_jobs_pass(setup: JobSetup, other: Any) -> None:
    keeper = MarkKeeper(setup.database, every=500)
    await _pass(setup, 1000, keeper)
    first = await _low(other)
    await _pass(setup, 3000, keeper)
    assert await _low(other) > max(first, 1000)


async def test_an_insert_held_open_past_ten_thousand_claims_is_found_when_it_commits(
    setup: JobSetup, other: Any
) -> None:
    keeper = MarkKeeper(setup.database, every=500)
    await _pass(setup, 1000, keeper)
    holding = other.transaction()
    await holding.start()
    seq = await _insert(other, setup)
    await _pass(setup, scale(10_000, 100_000), keeper)
    assert await _low(other) <= seq
    assert await setup.claim() == []
    await holding.commit()
    (late,) = await setup.claim()
    assert late.seq == seq
    await setup.finish(late)
    await _pass(setup, 3000, keeper)
    assert await _low(other) > seq, "and then the marks rise again"


async def test_an_insert_that_begins_between_the_looks_is_not_passed(setup: JobSetup, other: Any) -> None:
    """Watched, then opened: its seq is above the bound, and so the mark stays at or below it."""
    await _pass(setup, 1000)
    watch = await setup.database.run(watch_inserts())
    holding = other.transaction()
    await holding.start()
    seq = await _insert(other, setup)
    await _pass(setup, 1000)
    assert not await setup.database.run(still_open(watch))
    await setup.database.run(advance(watch.bound))
    assert await _low(other) <= seq
    await holding.commit()
    assert [job.seq for job in await setup.claim()] == [seq]


async def test_a_watch_is_open_for_as_long_as_one_of_its_inserts_is(setup: JobSetup, other: Any) -> None:
    holding = other.transaction()
    await holding.start()
    seq = await _insert(other, setup)
    watch = await setup.database.run(watch_inserts())
    assert watch.bound >= seq
    assert await setup.database.run(still_open(watch))
    await holding.rollback()
    assert not await setup.database.run(still_open(watch))


async def test_a_mark_stops_at_the_first_job_that_waits(setup: JobSetup, other: Any) -> None:
    await _pass(setup, 1000)
    waiting = await setup.enqueue()
    await setup.accept(*(setup.new() for _ in range(5)))
    await _raise_marks(setup)
    job = await setup.claim_one()
    assert job.id == waiting.id
    assert await _low(other) == job.seq


async def test_each_priority_has_its_own_mark(setup: JobSetup, other: Any) -> None:
    await setup.enqueue(priority=5)
    await _pass(setup, 1000)
    (held,) = [job for job in await setup.claim() if job.priority == 5] or [await setup.claimed(priority=5)]
    await setup.release(held)
    await _raise_marks(setup)
    assert await _low(other, 5) <= held.seq < await _low(other, 0)


Revival = Callable[[JobSetup, Job], Awaitable[object]]


async def _rescue(setup: JobSetup, job: Job) -> None:
    await setup.rescue_all()


async def _retry_by_hand(setup: JobSetup, job: Job) -> None:
    await setup.fail(job)
    await _raise_marks(setup)
    await setup.retry(job.id)


async def _wake(setup: JobSetup, job: Job) -> None:
    await setup.retry_later(job, seconds=1)
    await _raise_marks(setup)
    setup.clock.forward(1)
    await setup.wake_due()


async def _hasten(setup: JobSetup, job: Job) -> None:
    await setup.retry_later(job, seconds=1000)
    await _raise_marks(setup)
    await setup.retry(job.id)


async def _unpark(setup: JobSetup, job: Job) -> None:
    await setup.park(job)
    await _raise_marks(setup)
    await setup.unpark()


async def _release(setup: JobSetup, job: Job) -> None:
    await setup.release(job)


@pytest.mark.parametrize(
    "revive", [_rescue, _retry_by_hand, _wake, _hasten, _unpark, _release], ids=lambda each: each.__name__.strip("_")
)
async def test_an_old_job_is_found_again_although_the_mark_has_passed_it(
    setup: JobSetup, other: Any, revive: Revival
) -> None:
    old = await setup.claimed()
    await _pass(setup, 1000)
    await _raise_marks(setup)
    assert await _low(other) > old.seq
    await revive(setup, old)
    assert [job.id for job in await setup.claim()] == [old.id]


async def test_a_sleeper_whose_seq_the_mark_has_passed_is_found_when_it_wakes(setup: JobSetup, other: Any) -> None:
    sleeper = await setup.enqueue(not_before=setup.clock() + timedelta(seconds=5))
    await _pass(setup, 1000)
    await _raise_marks(setup)
    setup.clock.forward(5)
    assert await setup.wake_due() == 1
    assert [job.id for job in await setup.claim()] == [sleeper.id]


async def test_a_rewind_that_is_not_yet_committed_holds_the_mark_back(setup: JobSetup, other: Any) -> None:
    """The one who raises the marks waits for the one who rewinds them, and then sees what was made claimable."""
    old = await setup.claimed()
    await _pass(setup, 1000)
    await _raise_marks(setup)
    reviving = other.transaction()
    await reviving.start()
    await other.execute("UPDATE job_queue SET state = 'queued', lease_token = NULL WHERE seq = $1", old.seq)
    await other.execute("UPDATE job_marks SET low = LEAST(low, $1)", old.seq)
    raising = asyncio.create_task(_raise_marks(setup))
    await _until_someone_waits(other)
    await reviving.commit()
    await raising
    assert [job.seq for job in await setup.claim()] == [old.seq]


async def test_a_mark_raised_by_another_meanwhile_is_rewound_all_the_same(setup: JobSetup, other: Any) -> None:
    """The one who revives waits for the one who raises, and rewinds what that one has written."""
    old = await setup.claimed()
    await _pass(setup, 1000)
    raising = other.transaction()
    await raising.start()
    await other.execute("SELECT priority, low FROM job_marks ORDER BY priority FOR UPDATE")
    reviving = asyncio.create_task(setup.release(old))
    await _until_someone_waits(other)
    await other.execute("UPDATE job_marks SET low = $1", old.seq + 500)
    await raising.commit()
    assert await reviving == 1
    assert [job.seq for job in await setup.claim()] == [old.seq]


async def _until_someone_waits(other: asyncpg.Connection) -> None:
    """The server itself says when a transaction waits for another."""
    async with asyncio.timeout(PATIENCE_S):
        while not await other.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
            pass


async def test_on_sqlite_there_is_nothing_to_keep(sqlite_setup: JobSetup) -> None:
    keeper = MarkKeeper(sqlite_setup.database, every=1)
    keeper.claimed = 100
    assert not keeper.due
