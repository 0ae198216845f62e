"""For each writing verb behind the pages of connectors, queues and jobs: a database in which it has something to do."""

from datetime import timedelta
from typing import Any

from postroom.core.queue.queues import GATEWAY
from postroom.store.accounts import mailbox_jobs
from postroom.store.engine.database import Transaction
from postroom.store.engine.ids import new_id
from postroom.store.intake import queue_depths, unread
from postroom.store.jobs import job_figures, job_requests
from postroom.store.people.audit import Signature
from support.store.fault_cases_inbox import accepting, event
from support.store.fault_cases_jobs import Case
from support.store.inbox_setup import look
from support.store.job_setup import JobSetup


def signed() -> Signature:
    return Signature(new_id(), "person:mara", "operator", "on the page")


async def retry_for(setup: JobSetup) -> Transaction[Any]:
    job = await setup.claimed("sync", key="k")
    await setup.fail(job)
    return job_requests.retry_for(job.id, signed(), setup.clock())


async def cancel_for(setup: JobSetup) -> Transaction[Any]:
    job = await setup.enqueue("sync", key="k")
    return job_requests.cancel_for(job.id, signed(), setup.clock())


async def dismiss_for(setup: JobSetup) -> Transaction[Any]:
    job = await setup.claimed()
    await setup.fail(job)
    return job_requests.dismiss_for(job.id, signed(), setup.clock())


async def change_many(setup: JobSetup) -> Transaction[Any]:
    job, moved_on = await setup.claimed("sync", key="k"), await setup.claimed()
    await setup.fail(job)
    run = job_requests.BulkRun(new_id(), "retry", (("stage", "failed"),))
    ids = [job.id, moved_on.id, new_id()]
    return job_requests.change_many(run, ids, job_requests.BulkProgress(3), signed(), setup.clock())


async def ask_for_sync(setup: JobSetup) -> Transaction[Any]:
    return mailbox_jobs.ask_for_sync(new_id(), signed(), setup.clock())


async def begin_counting(setup: JobSetup) -> Transaction[Any]:
    return job_figures.begin_counting(setup.clock())


async def keep_counts(setup: JobSetup) -> Transaction[Any]:
    since = setup.clock() - timedelta(hours=1)
    await setup.database.run(job_figures.begin_counting(since))
    await setup.finish(await setup.claimed())
    until = setup.clock.forward(3600)
    found = await setup.database.run(job_figures.ended_between(since, until))
    return job_figures.keep_counts(since, until, found)


async def keep_depths(setup: JobSetup) -> Transaction[Any]:
    return queue_depths.keep_depths([queue_depths.DepthSample("email", "default", 3)], setup.clock())


async def prune_depths(setup: JobSetup) -> Transaction[Any]:
    await setup.database.run(await keep_depths(setup))
    return queue_depths.prune_depths(setup.clock() + timedelta(days=1))


async def dismiss_waiting(setup: JobSetup) -> Transaction[Any]:
    await setup.database.run(accepting(setup, [event(1)], GATEWAY))
    (row,) = await look(setup.database)
    return unread.dismiss_waiting("gateway", [row.id], signed(), setup.clock())


CASES: list[Case] = [
    retry_for,
    cancel_for,
    dismiss_for,
    change_many,
    ask_for_sync,
    begin_counting,
    keep_counts,
    keep_depths,
    prune_depths,
    dismiss_waiting,
]
