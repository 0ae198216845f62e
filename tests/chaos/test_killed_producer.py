"""SIGKILL of a process that enqueues: every job that was acknowledged exists."""

import asyncio
from collections.abc import AsyncGenerator
from random import Random
from uuid import UUID

import pytest

from postroom.store.engine.database import Database
from postroom.store.engine.opening import open_database
from postroom.store.jobs.jobs import count_jobs
from support.crash.accepted import accepted, check_accepted
from support.crash.counted_jobs import CATALOGUE
from support.crash.evidence import Place
from support.crash.halting_disk import Spot
from support.crash.points import MOMENTS, Point
from support.job_queue import JobQueue
from support.processes import Child, ProcessGroup
from support.scale import scale

PRODUCER = "support.crash.producer_process"
# 100 kB each, so that few jobs fill many pages; 200 MB in all, however long the process may live.
HEAVY = ("--weight", "100000", "--most", "2000")


@pytest.fixture
async def database(place: Place) -> AsyncGenerator[Database]:
    """The test's own connection to the database that the others are killed on."""
    opened = await open_database(place.folder, place.url)
    yield opened
    await opened.close()


async def test_what_a_killed_producer_was_told_is_accepted_is_there(
    place: Place, database: Database, children: ProcessGroup, rng: Random
) -> None:
    told: dict[str, UUID] = {}
    kills = scale(4, 30)
    for number in range(kills):
        producer = await children.start(PRODUCER, *place.arguments(), "--prefix", f"p{number}")
        await producer.hear("accepted")
        await asyncio.sleep(rng.uniform(0, 0.3))
        await producer.kill()
        told |= accepted(producer)
    await check_accepted(place, JobQueue(database, CATALOGUE), told)
    print(f"{kills} producers killed, {len(told)} jobs were acknowledged and are there")


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_producer_killed_around_its_commit_was_told_nothing_wrong(
    place: Place, database: Database, children: ProcessGroup, moment: str
) -> None:
    point = Point(moment, "enqueue_many")
    producer = await children.start(PRODUCER, *place.arguments(), "--prefix", "p", "--halt", str(point), "--hit", "5")
    await producer.hear("halt")
    committed = await place.rows("SELECT count(*) FROM jobs")
    await producer.kill()
    assert await place.rows("SELECT count(*) FROM jobs") == committed
    told = accepted(producer)
    assert moment != "after" or len(told) < committed[0][0], "committed, and nobody was told yet"
    await check_accepted(place, JobQueue(database, CATALOGUE), told)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("file", ["wal", "database"])
@pytest.mark.parametrize("act", ["write", "sync"])
async def test_a_process_killed_in_the_middle_of_a_commit_or_checkpoint_hurts_nobody_else(
    place: Place, database: Database, children: ProcessGroup, rng: Random, file: str, act: str
) -> None:
    queue = JobQueue(database, CATALOGUE)
    told: dict[str, UUID] = {}
    for number in range(scale(3, 20)):
        spot = Spot(file, act, rng.randint(1, 60) if (file, act) != ("database", "sync") else 1)
        producer = await children.start(
            PRODUCER, *place.arguments(), "--prefix", f"p{number}", "--halt-disk", str(spot), *HEAVY
        )
        async with asyncio.TaskGroup() as tasks:
            mine = tasks.create_task(enqueue_beside(queue, database, f"t{number}", producer))
            await producer.hear("halt")
            await producer.kill()
        told |= mine.result() | accepted(producer)
    await check_accepted(place, queue, told)


async def enqueue_beside(queue: JobQueue, database: Database, prefix: str, other: Child) -> dict[str, UUID]:
    """Reads and writes while the other lives, and once more when it is dead."""
    told: dict[str, UUID] = {}
    most = number = 0
    alive = True
    while alive:
        alive = other.running
        number += 1
        answer = await queue.enqueue("parcel", {}, key=f"{prefix}-{number}")
        told[f"{prefix}-{number}"] = answer.id
        counts = await database.run(count_jobs())
        assert counts["queued"] >= most, "what was there is there no more"
        most = counts["queued"]
    return told
