from postroom.core.job_types import Catalogue, JobType
from postroom.jobs.queue import JobQueue
from postroom.store.database import Database


async def test_a_job_that_was_accepted_can_be_shown(database: Database) -> None:
    queue = JobQueue(database, Catalogue(JobType("noop")))
    accepted = await queue.enqueue("noop", {"n": 1})
    shown = await queue.show(accepted.id)
    assert shown is not None
    assert shown.state == "queued"
