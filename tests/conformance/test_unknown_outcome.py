"""The network fails at the worst moment: a connection to PostgreSQL that is cut around COMMIT."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from postroom.core.errors import DatabaseUnavailable
from postroom.store.engine.postgres import PostgresDatabase
from postroom.store.jobs import jobs as store
from support.clocks import ManualClock
from support.faults import Cut, Wire
from support.job_queue import JobQueue
from support.patience import PATIENCE_S
from support.store.job_setup import TYPES, JobSetup, listen


@pytest.fixture
async def wire(postgres_setup: JobSetup, emptied_postgres_url: str) -> AsyncIterator[Wire]:
    async with Wire(emptied_postgres_url) as wire:
        yield wire


@pytest.fixture
async def wired(wire: Wire, clock: ManualClock) -> AsyncIterator[JobSetup]:
    database = PostgresDatabase(wire.url)
    yield JobSetup(database, clock)
    await database.close()


@pytest.mark.parametrize("where", list(Cut), ids=lambda where: where.name.lower())
async def test_an_enqueue_whose_commit_is_cut_is_answered_rightly_and_happens_once(
    wire: Wire, wired: JobSetup, where: Cut
) -> None:
    wire.cut("COMMIT", where)
    accepted = await wired.enqueue(key="once")
    assert wire.cuts == 1
    assert not accepted.duplicate
    assert await wired.counts() == {"queued": 1}
    assert await wired.state(accepted.id) == "queued"


@pytest.mark.parametrize("where", list(Cut), ids=lambda where: where.name.lower())
async def test_an_enqueue_that_commits_with_its_only_statement_happens_once(
    wire: Wire, wired: JobSetup, where: Cut
) -> None:
    queue = JobQueue(wired.database, TYPES, wired.clock)
    wire.cut("INSERT INTO job_bodies", where)
    accepted = await queue.enqueue("plain", {})
    assert wire.cuts == 1
    assert await wired.counts() == {"queued": 1}
    assert await wired.state(accepted.id) == "queued"


@pytest.mark.parametrize("where", list(Cut), ids=lambda where: where.name.lower())
async def test_a_claim_whose_commit_is_cut_gives_each_job_once(wire: Wire, wired: JobSetup, where: Cut) -> None:
    for _ in range(3):
        await wired.enqueue()
    token = await wired.open_lease()
    wire.cut("COMMIT", where)
    jobs = await wired.claim(2, token)
    assert wire.cuts == 1
    assert [job.attempts for job in jobs] == [1, 1]
    assert await wired.counts() == {"queued": 1, "running": 2}
    assert await wired.finish(*jobs) == {job.seq for job in jobs}


@pytest.mark.parametrize("where", list(Cut), ids=lambda where: where.name.lower())
async def test_a_finish_whose_commit_is_cut_is_told_that_the_job_was_ours(
    wire: Wire, wired: JobSetup, where: Cut
) -> None:
    job = await wired.claimed()
    wire.cut("COMMIT", where)
    assert await wired.finish(job) == {job.seq}
    assert wire.cuts == 1
    assert await wired.state(job.id) == "completed"


async def test_a_commit_that_is_cut_again_and_again_still_happens_once(wire: Wire, wired: JobSetup) -> None:
    for where in (Cut.BEFORE, Cut.BEFORE, Cut.AFTER):
        wire.cut("COMMIT", where)
    await wired.enqueue()
    assert wire.cuts == 3
    assert await wired.counts() == {"queued": 1}


async def test_doubt_about_the_settling_of_a_doubt_is_settled_too(wire: Wire, wired: JobSetup) -> None:
    """The commit never reached the server; the answer to the settling of that is lost as well."""
    wire.cut("COMMIT", Cut.BEFORE)
    wire.cut("INSERT INTO postroom.receipts (token, written_at, void)", Cut.AFTER)
    accepted = await wired.enqueue()
    assert wire.cuts == 2
    assert await wired.counts() == {"queued": 1}, "acknowledged, and not there"
    assert await wired.state(accepted.id) == "queued"


async def test_a_cut_in_the_middle_of_a_transaction_is_made_good(wire: Wire, wired: JobSetup) -> None:
    wire.cut("INSERT INTO job_bodies", Cut.AFTER)
    await wired.enqueue()
    assert wire.cuts == 1
    assert await wired.counts() == {"queued": 1}


async def test_a_cut_read_is_read_again(wire: Wire, wired: JobSetup) -> None:
    accepted = await wired.enqueue()
    wire.cut("FROM jobs WHERE id", Cut.AFTER)
    assert await wired.state(accepted.id) == "queued"
    assert wire.cuts == 1


async def test_reads_and_writes_reconnect_after_their_backends_were_terminated(
    postgres_setup: JobSetup, emptied_postgres_url: str
) -> None:
    setup = postgres_setup
    await asyncio.gather(*(setup.enqueue() for _ in range(5)))
    await _terminate_backends(emptied_postgres_url)
    assert await setup.counts() == {"queued": 5}
    await _terminate_backends(emptied_postgres_url)
    await asyncio.gather(*(setup.enqueue() for _ in range(5)))
    assert await setup.counts() == {"queued": 10}


async def test_a_subscription_hears_again_after_its_backend_was_terminated(
    postgres_setup: JobSetup, emptied_postgres_url: str
) -> None:
    heard = await listen(postgres_setup.database, store.CHANNEL)
    await _terminate_backends(emptied_postgres_url)
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == "", (
        "an empty message says: look, you may have missed something"
    )
    await postgres_setup.enqueue(priority=7)
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == "7"


async def test_a_server_that_stays_away_longer_than_our_patience_is_an_error_that_says_so() -> None:
    database = PostgresDatabase("postgresql://postroom@127.0.0.1:1/nothing", patience_s=0)
    with pytest.raises(DatabaseUnavailable, match="POSTROOM_DATABASE_URL"):
        await database.run(store.count_jobs())
    await database.close()


async def _terminate_backends(url: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    await connection.close()
