"""For each writing verb of the job engine: a database in which it has something to do, and the transaction itself.

Each case sets the stage so that the verb goes through as many of its statements as it has.
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from postroom.store.accounts import mailbox_jobs
from postroom.store.engine.database import Transaction
from postroom.store.engine.ids import new_id
from postroom.store.installation import health
from postroom.store.jobs import job_filters, job_marks, job_steps, jobs, leaders, schedules
from postroom.store.jobs.schedules import Schedule
from postroom.store.people.audit import Signature
from support.store.job_setup import LEASE, JobSetup

Case = Callable[[JobSetup], Awaitable[Transaction[Any]]]


async def enqueue_many(setup: JobSetup) -> Transaction[Any]:
    await setup.enqueue(key="taken")
    later = setup.clock() + timedelta(seconds=9)
    asked = [
        setup.new(key="taken"),
        setup.new(key="free"),
        setup.new(),
        setup.new("sync", key="late", not_before=later),
    ]
    return jobs.enqueue_many(asked, setup.clock())


async def enqueue_plain(setup: JobSetup) -> Transaction[Any]:
    return jobs.enqueue_plain([setup.new(), setup.new(priority=3)], setup.clock())


def _signed() -> Signature:
    return Signature(new_id(), "cli:ada", "admin")


async def ask_for_messages(setup: JobSetup) -> Transaction[Any]:
    """Of a hundred that were asked for before, whose job has ended, and of one more."""
    account_id, ids = new_id(), [f"18c{number}" for number in range(101)]
    await setup.database.run(mailbox_jobs.ask_for_messages(account_id, ids[:100], _signed(), setup.clock()))
    (job,) = await setup.claim()
    await setup.database.run(jobs.fail(job, "gone", setup.clock()))
    return mailbox_jobs.ask_for_messages(account_id, ids, _signed(), setup.clock())


async def open_lease(setup: JobSetup) -> Transaction[Any]:
    return jobs.open_lease(new_id(), "worker", setup.clock(), setup.clock() + LEASE)


async def heartbeat(setup: JobSetup) -> Transaction[Any]:
    job = await setup.claimed()
    await setup.cancel(job.id)
    return jobs.heartbeat(job.token, setup.clock.forward(5), setup.clock() + LEASE, [job.seq])


async def close_lease(setup: JobSetup) -> Transaction[Any]:
    token = await setup.open_lease()
    await setup.claimed_by(token)
    await setup.claimed_by(token, "sync", key="k", max_attempts=1)
    return jobs.close_lease(token, setup.clock())


async def claim(setup: JobSetup) -> Transaction[Any]:
    await setup.accept(setup.new(), setup.new(priority=4))
    return jobs.claim(await setup.open_lease(), 10, setup.clock())


async def finish(setup: JobSetup) -> Transaction[Any]:
    again = await setup.claimed()
    await setup.retry_later(again, seconds=0)
    await setup.accept(setup.new("sync", key="k"), setup.new())
    await setup.wake_due()
    held = await setup.claim()
    return jobs.finish([job.claim for job in held], [job.seq for job in held if job.releases_key], setup.clock())


async def fail(setup: JobSetup) -> Transaction[Any]:
    return jobs.fail(await setup.claimed("sync", key="k"), "broken", setup.clock())


async def cancel_claimed(setup: JobSetup) -> Transaction[Any]:
    return jobs.cancel_claimed(await setup.claimed("sync", key="k"), setup.clock())


async def retry_later(setup: JobSetup) -> Transaction[Any]:
    job = await setup.claimed()
    return jobs.retry_later(job.claim, setup.clock() + timedelta(seconds=5), "later", setup.clock())


async def park(setup: JobSetup) -> Transaction[Any]:
    return jobs.park((await setup.claimed()).claim, "account", "consent lost", setup.clock())


async def unpark(setup: JobSetup) -> Transaction[Any]:
    await setup.park(await setup.claimed())
    return jobs.unpark("account", setup.clock())


async def release(setup: JobSetup) -> Transaction[Any]:
    await setup.accept(setup.new(), setup.new(priority=4))
    return jobs.release([job.claim for job in await setup.claim()], setup.clock())


async def cancel_job(setup: JobSetup) -> Transaction[Any]:
    accepted = await setup.enqueue("sync", key="k")
    return jobs.cancel_job(accepted.id, setup.clock())


async def retry_job(setup: JobSetup) -> Transaction[Any]:
    job = await setup.claimed("sync", key="k")
    await setup.fail(job)
    return jobs.retry_job(job.id, setup.clock())


async def dismiss_jobs(setup: JobSetup) -> Transaction[Any]:
    job = await setup.claimed("sync", key="k")
    await setup.fail(job)
    return job_filters.dismiss_jobs([job.id], setup.clock())


async def wake_due(setup: JobSetup) -> Transaction[Any]:
    await setup.enqueue(not_before=setup.clock() + timedelta(seconds=1))
    return jobs.wake_due(setup.clock.forward(1), 10)


async def rescue(setup: JobSetup) -> Transaction[Any]:
    for token in (await setup.open_lease("dead"), await setup.open_lease("dead too")):
        await setup.claimed_by(token)
        await setup.claimed_by(token, "sync", key=f"k{token}", max_attempts=1)
    return jobs.rescue(setup.clock.forward(LEASE.total_seconds() + 1))


async def disown(setup: JobSetup) -> Transaction[Any]:
    token = await setup.open_lease()
    known = await setup.claimed_by(token)
    await setup.claimed_by(token)
    return jobs.disown(token, [known.seq], setup.clock())


async def prune(setup: JobSetup) -> Transaction[Any]:
    job = await setup.claimed()
    await setup.database.run(job_steps.begin_step(job, new_id(), "fetch", setup.clock()))
    await setup.finish(job)
    return jobs.prune("completed", setup.clock.forward(1), 10)


async def prune_receipts(setup: JobSetup) -> Transaction[Any]:
    return jobs.prune_receipts(setup.clock())


async def begin_step(setup: JobSetup) -> Transaction[Any]:
    return job_steps.begin_step(await setup.claimed(), new_id(), "fetch", setup.clock())


async def finish_step(setup: JobSetup) -> Transaction[Any]:
    job, step = await setup.claimed(), new_id()
    await setup.database.run(job_steps.begin_step(job, step, "fetch", setup.clock()))
    return job_steps.finish_step(job, step, {"found": 3}, setup.clock())


async def lead(setup: JobSetup) -> Transaction[Any]:
    return leaders.lead("jobs", "a", setup.clock(), setup.clock() + LEASE)


async def resign(setup: JobSetup) -> Transaction[Any]:
    await setup.database.run(await lead(setup))
    return leaders.resign("jobs", "a")


def _schedule(setup: JobSetup, name: str) -> Schedule:
    return Schedule(name, "0 * * * *", "plain", "{}", 0, setup.clock())


async def keep_schedules(setup: JobSetup) -> Transaction[Any]:
    await setup.database.run(schedules.keep_schedules([_schedule(setup, "old"), _schedule(setup, "kept")]))
    return schedules.keep_schedules([_schedule(setup, "kept"), _schedule(setup, "new")])


async def fire(setup: JobSetup) -> Transaction[Any]:
    schedule = _schedule(setup, "tick")
    await setup.database.run(schedules.keep_schedules([schedule]))
    return schedules.fire(schedule, [setup.new("sync", key="tick")], setup.clock() + LEASE, setup.clock())


async def advance(setup: JobSetup) -> Transaction[Any]:
    await setup.finish(await setup.claimed())
    watch = await setup.database.run(job_marks.watch_inserts())
    return job_marks.advance(watch.bound)


async def _sqlite_facts(setup: JobSetup) -> Transaction[Any]:
    return health._sqlite_facts()


ONLY_ON = {"advance": "postgres", "_sqlite_facts": "sqlite", "merge_words": "sqlite"}
CHANGES_NOTHING = {"_sqlite_facts", "prune_receipts"}
CASES: list[Case] = [
    enqueue_many,
    enqueue_plain,
    ask_for_messages,
    open_lease,
    heartbeat,
    close_lease,
    claim,
    finish,
    fail,
    cancel_claimed,
    retry_later,
    park,
    unpark,
    release,
    cancel_job,
    retry_job,
    dismiss_jobs,
    wake_due,
    rescue,
    disown,
    prune,
    prune_receipts,
    begin_step,
    finish_step,
    lead,
    resign,
    keep_schedules,
    fire,
    advance,
    _sqlite_facts,
]
