"""A queue for tests and benchmarks: enqueue one job or many, cancel, retry, look."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from postroom.core.jobs.job import Enqueued, JobView, NewJob
from postroom.core.jobs.types import Catalogue
from postroom.store.engine.batcher import Batcher
from postroom.store.engine.database import Database
from postroom.store.jobs import jobs as store
from postroom.store.jobs.new_jobs import new_job
from postroom.system.wall_clock import Clock, wall_clock


class JobQueue:
    """Accepts jobs. Every call is durable before it returns; concurrent calls share one commit."""

    def __init__(self, database: Database, catalogue: Catalogue, clock: Clock = wall_clock) -> None:
        self._database = database
        self._catalogue = catalogue
        self._clock = clock
        self._gather = Batcher[NewJob, Enqueued](self._accept)

    async def enqueue(
        self,
        type: str,
        payload: Mapping[str, Any],
        *,
        key: str | None = None,
        priority: int = 0,
        not_before: datetime | None = None,
        max_attempts: int | None = None,
        traceparent: str | None = None,
    ) -> Enqueued:
        """Accept a job. The same key again gives the first job's id."""
        job = new_job(
            self._catalogue,
            type,
            payload,
            key=key,
            priority=priority,
            not_before=not_before,
            max_attempts=max_attempts,
            traceparent=traceparent,
        )
        return await self._gather(job)

    async def enqueue_scheduled(
        self,
        type: str,
        payload: Mapping[str, Any],
        not_before: datetime,
        *,
        key: str | None = None,
        priority: int = 0,
        max_attempts: int | None = None,
    ) -> Enqueued:
        """Accept a job that sleeps until `not_before`."""
        return await self.enqueue(
            type, payload, key=key, priority=priority, not_before=not_before, max_attempts=max_attempts
        )

    async def enqueue_many(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Accept all of them or none, in one transaction. Made with `store.new_jobs.new_job`."""
        return await self._database.run(store.enqueue_many(jobs, self._clock()))

    async def cancel(self, id: UUID) -> str:
        """Cancel a job: `canceled` if it was queued, `requested` if it runs and will stop at its next step."""
        return await self._database.run(store.cancel_job(id, self._clock()))

    async def retry(self, id: UUID) -> None:
        """Queue a failed or canceled job again; make a sleeping one due."""
        await self._database.run(store.retry_job(id, self._clock()))

    async def show(self, id: UUID) -> JobView | None:
        return await self._database.run(store.show_job(id))

    async def _accept(self, jobs: list[NewJob]) -> list[Enqueued]:
        is_plain = all(job.key is None and job.not_before is None for job in jobs)
        enqueue = store.enqueue_plain if is_plain else store.enqueue_many
        return await self._database.run(enqueue(jobs, self._clock()))
