"""Everything a test does with the queue, on one database and one clock."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

from postroom.core.jobs.job import Enqueued, Job, JobView, NewJob
from postroom.core.jobs.retry import RetryPolicy
from postroom.core.jobs.types import Catalogue, JobType, KeyLifetime
from postroom.jobs.rescue import Rescuer
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.jobs import jobs as store
from postroom.store.jobs.new_jobs import new_job
from support.clocks import ManualClock
from support.patience import PATIENCE_S

LEASE = timedelta(seconds=60)
TYPES = Catalogue(
    JobType("plain", retry=RetryPolicy(max_attempts=3)),
    JobType("other", retry=RetryPolicy(max_attempts=3)),
    JobType("sync", KeyLifetime.WHILE_LIVE, RetryPolicy(max_attempts=3)),
)


async def listen(database: Database, *channels: str) -> "asyncio.Queue[str]":
    """What is heard on the channels from now on. PostgreSQL says with an empty message that it listens."""
    heard: asyncio.Queue[str] = asyncio.Queue()
    for channel in channels:
        database.subscribe(channel, heard.put_nowait)
    if database.dialect == "postgres":
        for _ in channels:
            assert await asyncio.wait_for(heard.get(), PATIENCE_S) == ""
    return heard


class JobSetup:
    """Short names for the verbs, with the clock of the test."""

    def __init__(self, database: Database, clock: ManualClock) -> None:
        self.database = database
        self.clock = clock
        self._token: UUID | None = None

    def new(self, type: str = "plain", payload: dict[str, Any] | None = None, **options: Any) -> NewJob:
        return new_job(TYPES, type, payload or {}, **options)

    async def accept(self, *jobs: NewJob) -> list[Enqueued]:
        return await self.database.run(store.enqueue_many(jobs, self.clock()))

    async def enqueue(self, type: str = "plain", payload: dict[str, Any] | None = None, **options: Any) -> Enqueued:
        return (await self.accept(self.new(type, payload, **options)))[0]

    async def open_lease(self, holder: str = "worker") -> UUID:
        token = new_id()
        await self.database.run(store.open_lease(token, holder, self.clock(), self.clock() + LEASE))
        return token

    async def claim(self, most: int = 1000, token: UUID | None = None) -> list[Job]:
        """By the lease that is named, or by one of the setup's own."""
        if token is None:
            token = self._token = self._token or await self.open_lease()
        return await self.database.run(store.claim(token, most, self.clock()))

    async def claim_one(self, token: UUID | None = None) -> Job:
        (job,) = await self.claim(1, token)
        return job

    async def claimed(self, type: str = "plain", payload: dict[str, Any] | None = None, **options: Any) -> Job:
        """A new job that runs."""
        await self.enqueue(type, payload, **options)
        return await self.claim_one()

    async def claimed_by(self, token: UUID, type: str = "plain", **options: Any) -> Job:
        """A new job that runs under that lease."""
        await self.enqueue(type, **options)
        return await self.claim_one(token)

    async def rescue_all(self) -> store.Rescue:
        """Lets every lease run out, and takes over what it held."""
        self._token = None
        self.clock.forward(LEASE.total_seconds() + 1)
        return await Rescuer(self.database, self.clock).tick()

    async def finish(self, *jobs: Job) -> set[int]:
        releasing = [job.seq for job in jobs if job.releases_key]
        return await self.database.run(store.finish([job.claim for job in jobs], releasing, self.clock()))

    async def fail(self, job: Job, error: str = "broken") -> bool:
        return await self.database.run(store.fail(job, error, self.clock()))

    async def retry_later(self, job: Job, seconds: float = 10, error: str = "later") -> bool:
        not_before = self.clock() + timedelta(seconds=seconds)
        return await self.database.run(store.retry_later(job.claim, not_before, error, self.clock()))

    async def park(self, job: Job, key: str = "account", seconds: float | None = None) -> bool:
        now = self.clock()
        until = None if seconds is None else now + timedelta(seconds=seconds)
        return await self.database.run(store.park(job.claim, key, "consent lost", now, until))

    async def release(self, *jobs: Job) -> int:
        return await self.database.run(store.release([job.claim for job in jobs], self.clock()))

    async def cancel_claimed(self, job: Job) -> bool:
        return await self.database.run(store.cancel_claimed(job, self.clock()))

    async def unpark(self, key: str = "account") -> int:
        return await self.database.run(store.unpark(key, self.clock()))

    async def wake_due(self, most: int = 1000) -> int:
        return await self.database.run(store.wake_due(self.clock(), most))

    async def cancel(self, id: UUID) -> str:
        return await self.database.run(store.cancel_job(id, self.clock()))

    async def retry(self, id: UUID) -> None:
        await self.database.run(store.retry_job(id, self.clock()))

    async def show(self, id: UUID) -> JobView:
        shown = await self.database.run(store.show_job(id))
        assert shown is not None
        return shown

    async def state(self, id: UUID) -> str:
        return (await self.show(id)).state

    async def counts(self) -> dict[str, int]:
        return await self.database.run(store.count_jobs())
