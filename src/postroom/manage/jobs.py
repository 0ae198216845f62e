"""Jobs: list, show, retry and cancel them."""

from uuid import UUID

from postroom.core.errors import NotFound
from postroom.core.jobs.job import JobView
from postroom.store import jobs
from postroom.store.engine.clock import Clock, wall_clock
from postroom.store.engine.database import Database


async def list_jobs(database: Database, state: str | None, type: str | None, limit: int) -> list[JobView]:
    """List jobs, newest first, without their steps."""
    return await database.run(jobs.list_jobs(state, type, limit))


async def load_job(database: Database, id: UUID) -> JobView:
    """Load one job with its steps."""
    job = await database.run(jobs.show_job(id))
    if job is None:
        raise NotFound(f"there is no job {id}; `postroom jobs list` lists them")
    return job


async def retry_job(database: Database, id: UUID, clock: Clock = wall_clock) -> None:
    """Queue a failed or canceled job again with all its attempts; make a waiting one due at once."""
    await database.run(jobs.retry_job(id, clock()))


async def cancel_job(database: Database, id: UUID, clock: Clock = wall_clock) -> str:
    """Cancel a job. Return `canceled` for a waiting job, `requested` for a running one, which ends at its next step."""
    return await database.run(jobs.cancel_job(id, clock()))
