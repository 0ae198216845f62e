"""Transactions: all or nothing, each for itself, however many share a commit; readers see only what is committed."""

import asyncio
import threading
from typing import Any

import apsw
import pytest

from conformance.desk import Desk, listen
from conformance.dump import dump
from conftest import scale
from postroom.core.errors import ConstraintBroken, DatabaseUnavailable, StoreError
from postroom.core.jobs.job import NewJob
from postroom.store import jobs as store
from postroom.store.engine.database import Notify, Script, Text, query, sql, transaction
from postroom.store.engine.sqlite import SqliteDatabase
from support.patience import PATIENCE_S


class Refused(Exception):
    """What the script itself raises."""


@transaction
def _accept_then(jobs: list[NewJob], desk: Desk, then: str) -> Script[int]:
    """Accepts the jobs and then ends well, or badly in one of several ways."""
    yield from store.enqueue_many.script(jobs, desk.clock())
    match then:
        case "raise":
            raise Refused(jobs[0].key)
        case "break a constraint":
            yield sql("insert_lease", jobs[0].id, "same", desk.clock(), desk.clock())
            yield sql("insert_lease", jobs[0].id, "same", desk.clock(), desk.clock())
        case "break the syntax":
            yield Text("SELEC 1")
        case _:
            pass
    return len(jobs)


WAYS = ["end well", "raise", "end well", "break a constraint", "end well", "break the syntax"]
ERRORS = {"raise": Refused, "break a constraint": ConstraintBroken, "break the syntax": StoreError}


async def test_a_failing_transaction_hurts_nobody_it_shares_a_commit_with(desk: Desk) -> None:
    count = scale(240, 5000)
    batches = [[desk.new(key=f"{n}:{each}") for each in range(3)] for n in range(count)]
    ways = [WAYS[n % len(WAYS)] for n in range(count)]
    answers = await asyncio.gather(
        *(desk.database.run(_accept_then(jobs, desk, way)) for jobs, way in zip(batches, ways, strict=True)),
        return_exceptions=True,
    )
    for answer, way in zip(answers, ways, strict=True):
        if way == "end well":
            assert answer == 3
        else:
            assert isinstance(answer, ERRORS[way])
    good = [jobs for jobs, way in zip(batches, ways, strict=True) if way == "end well"]
    kept = await desk.database.run(store.list_jobs(limit=10 * count))
    assert {job.id for job in kept} == {job.id for jobs in good for job in jobs}
    assert len(kept) == 3 * len(good)
    assert len((await dump(desk.database))[_name(desk, "job_keys")]) == 3 * len(good)
    assert not (await dump(desk.database))[_name(desk, "job_leases")]


async def test_a_transaction_that_fails_alone_leaves_nothing_and_the_next_one_works(desk: Desk) -> None:
    before = await dump(desk.database, receipts=True)
    for way, error in ERRORS.items():
        with pytest.raises(error):
            await desk.database.run(_accept_then([desk.new(key="k")], desk, way))
        assert await dump(desk.database, receipts=True) == before
    assert not (await desk.enqueue(key="k")).duplicate


async def test_a_transaction_that_fails_wakes_nobody(desk: Desk) -> None:
    heard = await listen(desk.database, store.CHANNEL)
    urgent = [desk.new(priority=99)]
    answers = await asyncio.gather(
        desk.database.run(_accept_then(urgent, desk, "raise")),
        desk.enqueue(priority=1),
        desk.database.run(_accept_then(urgent, desk, "break the syntax")),
        return_exceptions=True,
    )
    assert isinstance(answers[0], Refused)
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == "1"
    await desk.enqueue(priority=2)
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == "2"


async def test_waiting_transactions_share_a_commit(sqlite_desk: Desk) -> None:
    """While one transaction holds the writer, the others gather; then one commit answers them all."""
    assert isinstance(sqlite_desk.database, SqliteDatabase)
    database = sqlite_desk.database
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
    asked = [asyncio.create_task(sqlite_desk.enqueue()) for _ in range(100)]
    await asyncio.sleep(0)  # each has begun, and so each is in the writer's inbox
    assert database._inbox.qsize() == 100
    go_on.set()
    await asyncio.gather(holding, *asked)
    connection.set_commit_hook(None)
    assert len(commits) <= 2
    assert await sqlite_desk.counts() == {"queued": 100}


async def test_an_answer_comes_only_after_the_commit(sqlite_desk: Desk) -> None:
    """Another connection, which sees only what is committed, sees the job as soon as the caller is answered."""
    assert isinstance(sqlite_desk.database, SqliteDatabase)
    other = apsw.Connection(str(sqlite_desk.database.path), flags=apsw.SQLITE_OPEN_READONLY)

    async def ask() -> None:
        accepted = await sqlite_desk.enqueue()
        found = other.execute("SELECT count(*) FROM jobs WHERE id = ?", (str(accepted.id),)).fetchall()
        assert found == [(1,)]

    await asyncio.gather(*(ask() for _ in range(100)))
    other.close()


async def test_readers_see_only_what_is_committed(desk: Desk) -> None:
    """A batch of two is never seen half: whoever reads meanwhile counts an even number."""
    writing = True

    async def write() -> None:
        nonlocal writing
        for n in range(scale(40, 1000)):
            way = "raise" if n % 3 == 0 else "end well"
            batch = [desk.new(), desk.new()]
            await asyncio.gather(desk.database.run(_accept_then(batch, desk, way)), return_exceptions=True)
        writing = False

    async def read() -> int:
        seen = 0
        while writing:
            count = (await desk.counts()).get("queued", 0)
            assert count % 2 == 0
            assert count >= seen
            seen = count
        return seen

    await asyncio.gather(write(), read(), read())


async def test_a_reader_sees_one_moment_even_when_it_reads_twice(sqlite_desk: Desk) -> None:
    """SQLite: the snapshot stands while the writer goes on."""
    assert isinstance(sqlite_desk.database, SqliteDatabase)
    between, go_on = threading.Event(), threading.Event()

    @query
    def count_twice() -> Script[tuple[int, int]]:
        first = yield sql("count_jobs")
        between.set()
        go_on.wait(30)
        second = yield sql("count_jobs")
        return len(first), len(second)

    reading = asyncio.create_task(sqlite_desk.database.run(count_twice()))
    await asyncio.to_thread(between.wait, 30)
    await sqlite_desk.enqueue()
    go_on.set()
    assert await reading == (0, 0)
    assert await sqlite_desk.counts() == {"queued": 1}


async def test_a_caller_that_gives_up_does_not_disturb_the_others(desk: Desk) -> None:
    impatient = [asyncio.create_task(desk.enqueue()) for _ in range(20)]
    patient = [asyncio.create_task(desk.enqueue()) for _ in range(20)]
    await asyncio.sleep(0)
    for task in impatient:
        task.cancel()
    await asyncio.gather(*impatient, return_exceptions=True)
    ids = {answer.id for answer in await asyncio.gather(*patient)}
    assert ids <= {job.id for job in await desk.database.run(store.list_jobs(limit=100))}


async def test_a_closed_database_says_so(desk: Desk) -> None:
    await desk.database.close()
    with pytest.raises(DatabaseUnavailable, match="closed"):
        await desk.enqueue()


def _name(desk: Desk, table: str) -> str:
    return table if desk.database.dialect == "sqlite" else f"postroom.{table}"
