"""Postroom's side of the benchmark: the six verbs the harness asks of it.

Each verb runs in a fresh process of its own (`python -m bench.subject ours ORDER`) under uvloop, on a database made
for this one measurement: the product as shipped, with its logging, its durability and its public verbs.

The harness trusts nothing: `handled` is the number of times the no-op handler ran and `finished` the number of rows
the database itself says are completed (or stored, for `enqueue`); a drain that lost or repeated a job is an error.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from postroom.core.jobs.types import Catalogue, JobType
from postroom.jobs.run import JobRun
from postroom.jobs.worker import Worker
from postroom.settings.sections import LogSettings
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.migrate import migrate
from postroom.store.engine.postgres import PostgresDatabase
from postroom.store.engine.sqlite import SqliteDatabase
from postroom.store.jobs import jobs as store
from postroom.store.jobs.new_jobs import new_job
from postroom.telemetry.logs import configure_logging
from support.job_queue import JobQueue

from .order import Outcome, Tally, Target, produce

CATALOGUE = Catalogue(JobType("noop"))
FILL_CHUNK = 2000


@contextlib.asynccontextmanager
async def opened(target: Target) -> AsyncGenerator[Database]:
    configure_logging(LogSettings.model_validate({}))
    on_postgres = target.database == "postgres"
    database = PostgresDatabase(target.address) if on_postgres else SqliteDatabase(Path(target.address))
    try:
        yield database
    finally:
        await database.close()


async def prepare(target: Target) -> None:
    """Migrates the empty database."""
    async with opened(target) as database:
        await migrate(database)


async def fill(target: Target, count: int) -> None:
    """Enqueues `count` ready no-op jobs. Not measured."""
    await _fill(target, count, None)


async def fill_sleeping(target: Target, count: int) -> None:
    """Enqueues `count` jobs scheduled a day ahead. Not measured; they only lie beside the work."""
    await _fill(target, count, datetime.now(UTC) + timedelta(days=1))


async def _fill(target: Target, count: int, not_before: datetime | None) -> None:
    async with opened(target) as database:
        queue = JobQueue(database, CATALOGUE)
        for start in range(0, count, FILL_CHUNK):
            numbers = range(start, min(count, start + FILL_CHUNK))
            await queue.enqueue_many([new_job(CATALOGUE, "noop", {"n": n}, not_before=not_before) for n in numbers])


async def drain(target: Target, count: int) -> Outcome:
    """Works off exactly `count` no-op jobs with one worker in this process."""
    tally = Tally(count)

    async def noop(_run: JobRun) -> None:
        tally.count_one()

    async with opened(target) as database:
        worker = Worker(database, CATALOGUE, {"noop": noop})

        async def unfinished() -> bool:
            return worker.counts.completed < count

        await database.run(store.count_jobs())
        started = time.perf_counter()
        working = asyncio.create_task(worker.run())
        ended = await tally.wait_until_finished(unfinished)
        worker.stop()
        await working
        finished = (await database.run(store.count_jobs())).get("completed", 0)
    return Outcome(seconds=ended - started, handled=tally.handled, finished=finished)


async def enqueue(target: Target, producers: int, total: int) -> Outcome:
    """`producers` tasks share `total` calls of enqueue, each awaited until its own job is durable."""
    async with opened(target) as database:
        queue = JobQueue(database, CATALOGUE)
        seconds, latencies = await produce(
            lambda number: queue.enqueue("noop", {"n": number}), producers=producers, total=total
        )
        stored = sum((await database.run(store.count_jobs())).values())
    return Outcome(seconds=seconds, handled=len(latencies), finished=stored, latencies=latencies)


async def claim_cost(target: Target, claims: int, batch: int) -> Outcome:
    """Claims `batch` ready jobs, `claims` times, after one claim as warm-up. Nothing is finished."""
    async with opened(target) as database:
        now = datetime.now(UTC)
        token = new_id()
        await database.run(store.open_lease(token, "bench", now, now + timedelta(hours=1)))
        await database.run(store.claim(token, batch, now))
        latencies: list[float] = []
        handled = 0
        for _ in range(claims):
            started = time.perf_counter()
            handled += len(await database.run(store.claim(token, batch, now)))
            latencies.append(time.perf_counter() - started)
    return Outcome(seconds=sum(latencies), handled=handled, latencies=latencies)
