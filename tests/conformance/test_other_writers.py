"""What another process writes is noticed: PostgreSQL tells, and on SQLite the writer looks. So nobody has to poll."""

import asyncio

from postroom.store.engine.database import Database
from postroom.store.jobs import jobs
from support.patience import PATIENCE_S
from support.store.job_setup import JobSetup, listen


async def test_whoever_listens_is_woken_by_the_writes_of_another_process(
    setup: JobSetup, second_database: Database
) -> None:
    heard = await listen(setup.database, "jobs")
    await setup.database.run(jobs.enqueue_many([setup.new()], setup.clock()))
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == "0"
    for _ in range(2):
        await second_database.run(jobs.enqueue_many([setup.new()], setup.clock()))
        said = await asyncio.wait_for(heard.get(), PATIENCE_S)
        assert said == ("" if setup.database.dialect == "sqlite" else "0")


async def test_what_this_process_writes_itself_is_told_once(sqlite_setup: JobSetup) -> None:
    heard = await listen(sqlite_setup.database, "jobs")
    for _ in range(2):
        await sqlite_setup.database.run(jobs.enqueue_many([sqlite_setup.new()], sqlite_setup.clock()))
    assert [await asyncio.wait_for(heard.get(), PATIENCE_S) for _ in range(2)] == ["0", "0"]
    assert heard.empty()
