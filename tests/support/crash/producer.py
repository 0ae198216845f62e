"""A producer inside the test: it keeps enqueueing, and remembers every id whose enqueue has returned."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from random import Random
from uuid import UUID

from postroom.store.engine.database import Database
from postroom.store.engine.opening import open_database
from support.crash.counted_jobs import CATALOGUE, create_deliveries
from support.crash.evidence import Place
from support.job_queue import JobQueue

KINDS = ("letter", "parcel", "letter", "parcel", "parcel", "refused", "undeliverable", "errand")
ATTEMPTS = (1, 2, 5, 30, 30, 30)
BATCH = 6
PACE_S = 0.05
LIVE_ERRANDS = 3


class Producer:
    """Enqueues small batches at a steady pace until it is told to stop."""

    def __init__(self, database: Database, rng: Random, pace_s: float) -> None:
        self.acknowledged: set[UUID] = set()
        self._queue = JobQueue(database, CATALOGUE)
        self._rng = rng
        self._pace_s = pace_s
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        while not self._stopping.is_set():
            await self.produce(BATCH)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), self._pace_s)

    async def produce(self, count: int) -> None:
        await asyncio.gather(*(self._enqueue() for _ in range(count)))

    def stop(self) -> None:
        self._stopping.set()

    async def _enqueue(self) -> None:
        kind = self._rng.choice(KINDS)
        key = f"errand-{self._rng.randrange(LIVE_ERRANDS)}" if kind == "errand" else None
        accepted = await self._queue.enqueue(
            kind, {"weight": self._rng.random()}, key=key, max_attempts=self._rng.choice(ATTEMPTS)
        )
        self.acknowledged.add(accepted.id)


@contextlib.asynccontextmanager
async def producing(place: Place, rng: Random, pace_s: float = PACE_S) -> AsyncGenerator[Producer]:
    """A producer at work, on a connection of its own; it has stopped when this ends."""
    database = await open_database(place.folder, place.url)
    try:
        await database.run(create_deliveries())
        producer = Producer(database, rng, pace_s)
        await producer.produce(BATCH)
        working = asyncio.create_task(producer.run())
        try:
            yield producer
        finally:
            producer.stop()
            await working
    finally:
        await database.close()
