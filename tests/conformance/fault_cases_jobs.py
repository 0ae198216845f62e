"""For each writing verb of the job engine: a database in which it has something to do, and the transaction itself.

Each case sets the stage so that the verb goes through as many of its statements as it has.
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from conformance.desk import LEASE, Desk
from postroom.store import health, job_marks, job_steps, jobs, leaders, mailbox_jobs, schedules
from postroom.store.engine.database import Transaction
from postroom.store.engine.ids import new_id
from postroom.store.schedules import Schedule

Case = Callable[[Desk], Awaitable[Transaction[Any]]]


async def enqueue_many(desk: Desk) -> Transaction[Any]:
    await desk.enqueue(key="taken")
    later = desk.clock() + timedelta(seconds=9)
    asked = [desk.new(key="taken"), desk.new(key="free"), desk.new(), desk.new("sync", key="late", not_before=later)]
    return jobs.enqueue_many(asked, desk.clock())


async def enqueue_plain(desk: Desk) -> Transaction[Any]:
    return jobs.enqueue_plain([desk.new(), desk.new(priority=3)], desk.clock())


async def ask_for_messages(desk: Desk) -> Transaction[Any]:
    """Of a hundred that were asked for before, whose job has ended, and of one more."""
    account_id, ids = new_id(), [f"18c{number}" for number in range(101)]
    await desk.database.run(mailbox_jobs.ask_for_messages(account_id, ids[:100], desk.clock()))
    (job,) = await desk.claim()
    await desk.database.run(jobs.fail(job, "gone", desk.clock()))
    return mailbox_jobs.ask_for_messages(account_id, ids, desk.clock())


async def open_lease(desk: Desk) -> Transaction[Any]:
    return jobs.open_lease(new_id(), "worker", desk.clock(), desk.clock() + LEASE)


async def heartbeat(desk: Desk) -> Transaction[Any]:
    job = await desk.claimed()
    await desk.cancel(job.id)
    return jobs.heartbeat(job.token, desk.clock.forward(5), desk.clock() + LEASE, [job.seq])


async def close_lease(desk: Desk) -> Transaction[Any]:
    token = await desk.open_lease()
    await desk.claimed_by(token)
    await desk.claimed_by(token, "sync", key="k", max_attempts=1)
    return jobs.close_lease(token, desk.clock())


async def claim(desk: Desk) -> Transaction[Any]:
    await desk.accept(desk.new(), desk.new(priority=4))
    return jobs.claim(await desk.open_lease(), 10, desk.clock())


async def finish(desk: Desk) -> Transaction[Any]:
    again = await desk.claimed()
    await desk.retry_later(again, seconds=0)
    await desk.accept(desk.new("sync", key="k"), desk.new())
    await desk.wake_due()
    held = await desk.claim()
    return jobs.finish([job.claim for job in held], [job.seq for job in held if job.releases_key], desk.clock())


async def fail(desk: Desk) -> Transaction[Any]:
    return jobs.fail(await desk.claimed("sync", key="k"), "broken", desk.clock())


async def cancel_claimed(desk: Desk) -> Transaction[Any]:
    return jobs.cancel_claimed(await desk.claimed("sync", key="k"), desk.clock())


async def retry_later(desk: Desk) -> Transaction[Any]:
    job = await desk.claimed()
    return jobs.retry_later(job.claim, desk.clock() + timedelta(seconds=5), "later", desk.clock())


async def park(desk: Desk) -> Transaction[Any]:
    return jobs.park((await desk.claimed()).claim, "account", "consent lost", desk.clock())


async def unpark(desk: Desk) -> Transaction[Any]:
    await desk.park(await desk.claimed())
    return jobs.unpark("account", desk.clock())


async def release(desk: Desk) -> Transaction[Any]:
    await desk.accept(desk.new(), desk.new(priority=4))
    return jobs.release([job.claim for job in await desk.claim()], desk.clock())


async def cancel_job(desk: Desk) -> Transaction[Any]:
    accepted = await desk.enqueue("sync", key="k")
    return jobs.cancel_job(accepted.id, desk.clock())


async def retry_job(desk: Desk) -> Transaction[Any]:
    job = await desk.claimed("sync", key="k")
    await desk.fail(job)
    return jobs.retry_job(job.id, desk.clock())


async def wake_due(desk: Desk) -> Transaction[Any]:
    await desk.enqueue(not_before=desk.clock() + timedelta(seconds=1))
    return jobs.wake_due(desk.clock.forward(1), 10)


async def rescue(desk: Desk) -> Transaction[Any]:
    for token in (await desk.open_lease("dead"), await desk.open_lease("dead too")):
        await desk.claimed_by(token)
        await desk.claimed_by(token, "sync", key=f"k{token}", max_attempts=1)
    return jobs.rescue(desk.clock.forward(LEASE.total_seconds() + 1))


async def disown(desk: Desk) -> Transaction[Any]:
    token = await desk.open_lease()
    known = await desk.claimed_by(token)
    await desk.claimed_by(token)
    return jobs.disown(token, [known.seq], desk.clock())


async def prune(desk: Desk) -> Transaction[Any]:
    job = await desk.claimed()
    await desk.database.run(job_steps.begin_step(job, new_id(), "fetch", desk.clock()))
    await desk.finish(job)
    return jobs.prune("completed", desk.clock.forward(1), 10)


async def prune_receipts(desk: Desk) -> Transaction[Any]:
    return jobs.prune_receipts(desk.clock())


async def begin_step(desk: Desk) -> Transaction[Any]:
    return job_steps.begin_step(await desk.claimed(), new_id(), "fetch", desk.clock())


async def finish_step(desk: Desk) -> Transaction[Any]:
    job, step = await desk.claimed(), new_id()
    await desk.database.run(job_steps.begin_step(job, step, "fetch", desk.clock()))
    return job_steps.finish_step(job, step, {"found": 3}, desk.clock())


async def lead(desk: Desk) -> Transaction[Any]:
    return leaders.lead("jobs", "a", desk.clock(), desk.clock() + LEASE)


async def resign(desk: Desk) -> Transaction[Any]:
    await desk.database.run(await lead(desk))
    return leaders.resign("jobs", "a")


def _schedule(desk: Desk, name: str) -> Schedule:
    return Schedule(name, "0 * * * *", "plain", "{}", 0, desk.clock())


async def keep_schedules(desk: Desk) -> Transaction[Any]:
    await desk.database.run(schedules.keep_schedules([_schedule(desk, "old"), _schedule(desk, "kept")]))
    return schedules.keep_schedules([_schedule(desk, "kept"), _schedule(desk, "new")])


async def fire(desk: Desk) -> Transaction[Any]:
    schedule = _schedule(desk, "tick")
    await desk.database.run(schedules.keep_schedules([schedule]))
    return schedules.fire(schedule, desk.new("sync", key="tick"), desk.clock() + LEASE, desk.clock())


async def advance(desk: Desk) -> Transaction[Any]:
    await desk.finish(await desk.claimed())
    watch = await desk.database.run(job_marks.watch_inserts())
    return job_marks.advance(watch.bound)


async def _sqlite_facts(desk: Desk) -> Transaction[Any]:
    return health._sqlite_facts()


ONLY_ON = {"advance": "postgres", "_sqlite_facts": "sqlite"}
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
