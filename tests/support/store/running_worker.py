"""A real running worker, with handlers that report to the test."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from datetime import timedelta
from random import Random
from typing import Any, TypeVar
from uuid import UUID

from postroom.core.jobs.job import JobView
from postroom.core.jobs.types import Catalogue
from postroom.jobs.run import Handler, JobRun
from postroom.jobs.worker import Worker, WorkerOptions
from postroom.store.engine.database import Database, Dialect, Subscription, Transaction
from support.patience import PATIENCE_S
from support.store.job_setup import TYPES, JobSetup

T = TypeVar("T")


async def until(condition: Callable[[], bool | Awaitable[bool]]) -> None:
    """Asks again and again; the test fails when it does not come true."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            answer = condition()
            if answer if isinstance(answer, bool) else await answer:
                return
            await asyncio.sleep(0)


async def until_back(setup: JobSetup, id: UUID, attempts: int) -> JobView:
    """Waits for the job to be in the queue again after that many attempts."""
    shown = await setup.show(id)

    async def is_back() -> bool:
        nonlocal shown
        shown = await setup.show(id)
        return (shown.state, shown.attempts) == ("queued", attempts)

    await until(is_back)
    return shown


async def warm_up(setup: JobSetup, worker: Worker) -> None:
    """Gives the worker quick jobs (of the type `other`) until it has seen how fast it is, and so claims ahead."""

    async def has_been_measured() -> bool:
        await setup.enqueue("other")
        return worker._buffer._rate > 0

    await until(has_been_measured)
    await until(lambda: worker.counts.completed == worker.counts.claimed)


async def quick(run: JobRun) -> None:
    """A handler that has nothing to do."""


class Gate:
    """A handler that tells when it was entered and stays until it is let go."""

    def __init__(self) -> None:
        self.entered: asyncio.Queue[JobRun] = asyncio.Queue()
        self.order: list[Any] = []
        self.inside = 0
        self.most_inside = 0
        self.canceled = 0
        self._places = asyncio.Semaphore(0)

    async def __call__(self, run: JobRun) -> None:
        self.order.append(run.job.payload.get("n"))
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)
        self.entered.put_nowait(run)
        try:
            await self._places.acquire()
        except asyncio.CancelledError:
            self.canceled += 1
            raise
        finally:
            self.inside -= 1

    async def next(self) -> JobRun:
        return await asyncio.wait_for(self.entered.get(), PATIENCE_S)

    def let_go(self, count: int = 1) -> None:
        for _ in range(count):
            self._places.release()


class HookedDatabase:
    """A database between a worker and the real one, which a test can have do something before a named verb, or
    after one that gave something. Each is done once.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.before: dict[str, Callable[[], Awaitable[None]]] = {}
        self.after: dict[str, Callable[[], Awaitable[None]]] = {}
        self.seen: list[str] = []

    @property
    def dialect(self) -> Dialect:
        return self._database.dialect

    async def run(self, transaction: Transaction[T]) -> T:
        self.seen.append(transaction.name)
        if meddle := self.before.pop(transaction.name, None):
            await meddle()
        result = await self._database.run(transaction)
        if result and (meddle := self.after.pop(transaction.name, None)):
            await meddle()
        return result

    def subscribe(self, channel: str, callback: Callable[[str], None]) -> Subscription:
        return self._database.subscribe(channel, callback)

    async def close(self) -> None:
        await self._database.close()


@contextlib.asynccontextmanager
async def working(
    setup: JobSetup,
    handler: Handler | Mapping[str, Handler],
    *,
    database: Database | None = None,
    types: Catalogue = TYPES,
    concurrency: int = 4,
    heartbeat: timedelta = timedelta(hours=1),
    **options: Any,
) -> AsyncGenerator[Worker]:
    """A worker that runs during the block and is stopped gracefully at its end."""
    handlers = handler if isinstance(handler, Mapping) else dict.fromkeys(types, handler)
    chosen = WorkerOptions(concurrency=concurrency, heartbeat=heartbeat, poll=timedelta(milliseconds=20), **options)
    worker = Worker(
        database or setup.database, types, handlers, chosen, setup.clock, Random(7), lambda: setup.clock().timestamp()
    )
    task = asyncio.create_task(worker.run())
    try:
        yield worker
    except BaseException:
        task.cancel()
        raise
    finally:
        worker.stop()
        await asyncio.gather(asyncio.wait_for(task, PATIENCE_S), return_exceptions=task.cancelled())
