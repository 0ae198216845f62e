"""Transactions are all or nothing, however many share a commit; readers see only what is committed."""

import asyncio
import threading
from typing import Any

import apsw
import pytest

from postroom.core.errors import ConstraintBroken, DatabaseUnavailable, StoreError
from postroom.core.jobs.job import NewJob
from postroom.store.engine.database import Notify, Script, Text, query, sql, transaction
from postroom.store.engine.sqlite import SqliteDatabase
from postroom.store.jobs import jobs as store
from support.patience import PATIENCE_S
from support.scale import scale
from support.store.dump import dump
from support.store.job_setup import JobSetup, listen


class Refused(Exception):
    """What the script itself raises."""


@transaction
def _accept_then(jobs: list[NewJob], setup: JobSetup, then: str) -> Script[int]:
    """Accepts the jobs and then ends well, or badly in one of several ways."""
    yield from store.enqueue_many.script(jobs, setup.clock())
    match then:
        case "raise":
            raise Refused(jobs[0].key)
        case "break a constraint":
            yield sql("insert_lease", jobs[0].id, "same", setup.clock(), setup.clock())
            yield sql("insert_lease", jobs[0].id, "same", setup.clock(), setup.clock())
        case "break the syntax":
            yield Text("SELEC 1")
        case _:
            pass
    return len(jobs)


WAYS = ["end well", "raise", "end well", "break a constraint", "end well", "break the syntax"]
ERRORS = {"raise": Refused, "break a constraint": ConstraintBroken, "break the syntax": StoreError}


async def test_a_failing_transaction_hurts_nobody_it_shares_a_commit_with(setup: JobSetup) -> None:
    count = scale(240, 5000)
    batches = [[setup.new(key=f"{n}:{each}") for each in range(3)] for n in range(count)]
    ways = [WAYS[n % len(WAYS)] for n in range(count)]
    answers = await asyncio.gather(
        *(setup.database.run(_accept_then(jobs, setup, way)) for jobs, way in zip(batches, ways, strict=True)),
        return_exceptions=True,
    )
    for answer, way in zip(answers, ways, strict=True):
        if way == "end well":
            assert answer == 3
        else:
            assert isinstance(answer, ERRORS[way])
    good = [jobs for jobs, way in zip(batches, ways, strict=True) if way == "end well"]
    kept = await setup.database.run(store.list_jobs(limit=10 * count))
    assert {job.id for job in kept} == {job.id for jobs in good for job in jobs}
    assert len(kept) == 3 * len(good)
    assert len((await dump(setup.database))[_name(setup, "job_keys")]) == 3 * len(good)
    assert not (await dump(setup.database))[_name(setup, "job_leases")]


async def test_a_transaction_that_fails_alone_leaves_nothing_and_the_next_one_works(setup: JobSetup) -> None:
    before = await dump(setup.database, receipts=True)
    for way, error in ERRORS.items():
        with pytest.raises(error):
            await setup.database.run(_accept_then([setup.new(key="k")], setup, way))
        assert await dump(setup.database, receipts=True) == before
    assert not (await setup.enqueue(key="k")).duplicate


async def test_a_transaction_that_fails_wakes_nobody(setup: JobSetup) -> None:
    heard = await listen(setup.database, store.CHANNEL)
    urgent = [setup.new(priority=99)]
    answers = await asyncio.gather(
        setup.database.run(_accept_then(urgent, setup, "raise")),
        setup.enqueue(priority=1),
        setup.database.run(_accept_then(urgent, setup, "break the syntax")),
        return_exceptions=True,
    )
    assert isinstance(answers[0], Refused)
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == "1"
    await setup.enqueue(priority=2)
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == "2"


async def test_waiting_transactions_share_a_commit(sqlite_setup: JobSetup) -> None:
    """While one transaction holds the writer, the others gather; then one commit answers them all."""
    assert isinstance(sqlite_setup.database, SqliteDatabase)
    database = sqlite_setup.database
    begun, go_on = threading.Event(), threading.Event()

    @transaction
    def hold() -> Script[None]:
        begun.set()
        go_on.wait(30)
        yield Notify("test", "held")

    commits: list[int] = []
    connection: Any = database._connection

    def count() -> bool:
        commits.append(1)
        return False  # go on with the commit

    connection.set_commit_hook(count)
    holding = asyncio.create_task(database.run(hold()))
    await asyncio.to_thread(begun.wait, 30)
    asked = [asyncio.create_task(sqlite_setup.enqueue()) for _ in range(100)]
    await asyncio.sleep(0)  # each has begun, and so each is in the writer's inbox
    assert database._inbox.qsize() == 100
    go_on.set()
    await asyncio.gather(holding, *asked)
    connection.set_commit_hook(None)
    assert len(commits) <= 2
    assert await sqlite_setup.counts() == {"queued": 100}


async def test_an_answer_comes_only_after_the_commit(sqlite_setup: JobSetup) -> None:
    """Another connection, which sees only what is committed, sees the job as soon as the caller is answered."""
    assert isinstance(sqlite_setup.database, SqliteDatabase)
    other = apsw.Connection(str(sqlite_setup.database.path), flags=apsw.SQLITE_OPEN_READONLY)

    async def ask() -> None:
        accepted = await sqlite_setup.enqueue()
        found = other.execute("SELECT count(*) FROM jobs WHERE id = ?", (str(accepted.id),)).fetchall()
        assert found == [(1,)]

    await asyncio.gather(*(ask() for _ in range(100)))
    other.close()


async def test_readers_see_only_what_is_committed(setup: JobSetup) -> None:
    """A batch of two is never seen half: whoever reads meanwhile counts an even number."""
    writing = True

    async def write() -> None:
        nonlocal writing
        for n in range(scale(40, 1000)):
            way = "raise" if n % 3 == 0 else "end well"
            batch = [setup.new(), setup.new()]
            await asyncio.gather(setup.database.run(_accept_then(batch, setup, way)), return_exceptions=True)
        writing = False

    async def read() -> int:
        seen = 0
        while writing:
            count = (await setup.counts()).get("queued", 0)
            assert count % 2 == 0
            assert count >= seen
            seen = count
        return seen

    await asyncio.gather(write(), read(), read())


async def test_a_reader_sees_one_moment_even_when_it_reads_twice(sqlite_setup: JobSetup) -> None:
    """SQLite: the snapshot stands while the writer goes on."""
    assert isinstance(sqlite_setup.database, SqliteDatabase)
    between, go_on = threading.Event(), threading.Event()

    @query
    def count_twice() -> Script[tuple[int, int]]:
        first = yield sql("count_jobs")
        between.set()
        go_on.wait(30)
        second = yield sql("count_jobs")
        return len(first), len(second)

    reading = asyncio.create_task(sqlite_setup.database.run(count_twice()))
    await asyncio.to_thread(between.wait, 30)
    await sqlite_setup.enqueue()
    go_on.set()
    assert await reading == (0, 0)
    assert await sqlite_setup.counts() == {"queued": 1}


async def test_a_caller_that_gives_up_does_not_disturb_the_others(setup: JobSetup) -> None:
    impatient = [asyncio.create_task(setup.enqueue()) for _ in range(20)]
    patient = [asyncio.create_task(setup.enqueue()) for _ in range(20)]
    await asyncio.sleep(0)
    for task in impatient:
        task.cancel()
    await asyncio.gather(*impatient, return_exceptions=True)
    ids = {answer.id for answer in await asyncio.gather(*patient)}
    assert ids <= {job.id for job in await setup.database.run(store.list_jobs(limit=100))}


async def test_a_closed_database_says_so(setup: JobSetup) -> None:
    await setup.database.close()
    with pytest.raises(DatabaseUnavailable, match="closed"):
        await setup.enqueue()


def _name(setup: JobSetup, table: str) -> str:
    return table if setup.database.dialect == "sqlite" else f"postroom.{table}"
