"""A stale owner changes nothing: every verb on claimed work, with every kind of stale claim."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from postroom.core.errors import LeaseLost
from postroom.core.jobs.job import Job
from postroom.store.engine.database import Script, transaction
from postroom.store.engine.ids import new_id
from postroom.store.jobs import job_steps
from postroom.store.jobs import jobs as store
from support.store.dump import dump
from support.store.job_setup import JobSetup

Act = Callable[[JobSetup, Job], Awaitable[object]]
ACTS: dict[str, Act] = {
    "finish": lambda setup, job: setup.finish(job),
    "fail": lambda setup, job: setup.fail(job),
    "cancel_claimed": lambda setup, job: setup.cancel_claimed(job),
    "retry_later": lambda setup, job: setup.retry_later(job),
    "park": lambda setup, job: setup.park(job),
    "release": lambda setup, job: setup.release(job),
}
RAISING: dict[str, Act] = {
    "begin_step": lambda setup, job: setup.database.run(job_steps.begin_step(job, new_id(), "fetch", setup.clock())),
    "finish_step": lambda setup, job: setup.database.run(job_steps.finish_step(job, new_id(), {}, setup.clock())),
    "completing_one": lambda setup, job: setup.database.run(_complete(job, setup)),
}


@transaction
def _complete(job: Job, setup: JobSetup) -> Script[None]:
    yield from store.completing_one(job, setup.clock())


async def _wrong_token(setup: JobSetup) -> Job:
    return (await setup.claimed("sync", key="k"))._replace(token=await setup.open_lease())


async def _earlier_attempt(setup: JobSetup) -> Job:
    """The same lease has claimed the same job again."""
    job = await setup.claimed("sync", key="k")
    await setup.retry_later(job, seconds=0)
    await setup.wake_due()
    await setup.claim_one()
    return job


async def _later_attempt(setup: JobSetup) -> Job:
    job = await setup.claimed("sync", key="k")
    return job._replace(attempts=job.attempts + 1)


async def _rescued(setup: JobSetup) -> Job:
    job = await setup.claimed("sync", key="k")
    await setup.rescue_all()
    return job


async def _taken_over(setup: JobSetup) -> Job:
    job = await _rescued(setup)
    await setup.claim_one()
    return job


async def _ended_by_the_new_owner(setup: JobSetup) -> Job:
    job = await _rescued(setup)
    await setup.finish(await setup.claim_one())
    return job


async def _already_finished(setup: JobSetup) -> Job:
    job = await setup.claimed("sync", key="k")
    await setup.finish(job)
    return job


async def _released(setup: JobSetup) -> Job:
    """Released, and claimed again under another lease: the attempts are equal, only the token differs."""
    job = await setup.claimed("sync", key="k")
    await setup.release(job)
    await setup.claim_one(await setup.open_lease())
    return job


STALE = [
    _wrong_token,
    _earlier_attempt,
    _later_attempt,
    _rescued,
    _taken_over,
    _ended_by_the_new_owner,
    _already_finished,
    _released,
]


@pytest.mark.parametrize("become_stale", STALE, ids=lambda each: each.__name__.strip("_"))
async def test_a_stale_owner_is_refused_and_changes_nothing(
    setup: JobSetup, become_stale: Callable[[JobSetup], Awaitable[Job]]
) -> None:
    job = await become_stale(setup)
    before = await dump(setup.database)
    for name, act in ACTS.items():
        assert not await act(setup, job), name
        assert await dump(setup.database) == before, name
    for name, act in RAISING.items():
        with pytest.raises(LeaseLost, match="taken over by another worker"):
            await act(setup, job)
        assert await dump(setup.database) == before, name


@pytest.mark.parametrize("name", [*ACTS, *RAISING])
async def test_the_owner_is_not_refused(setup: JobSetup, name: str) -> None:
    """What the fence refuses to others it grants to the owner: without this, the test above could pass for nothing."""
    job = await setup.claimed()
    before = await dump(setup.database)
    answer = await (ACTS | RAISING)[name](setup, job)
    assert answer or name in RAISING
    assert (await dump(setup.database) != before) == (name != "finish_step")


async def test_of_many_finishes_only_those_that_are_ours_happen(setup: JobSetup) -> None:
    await setup.accept(*(setup.new() for _ in range(3)))
    first, second, third = await setup.claim()
    done = await setup.finish(first, second._replace(token=new_id()), third)
    assert done == {first.seq, third.seq}
    assert [await setup.state(job.id) for job in (first, second, third)] == ["completed", "running", "completed"]


async def test_of_many_releases_only_those_that_are_ours_happen(setup: JobSetup) -> None:
    await setup.accept(*(setup.new() for _ in range(3)))
    first, second, third = await setup.claim()
    assert await setup.release(first._replace(attempts=9), second, third._replace(token=new_id())) == 1
    assert [await setup.state(job.id) for job in (first, second, third)] == ["running", "queued", "running"]


async def test_the_same_finish_twice_in_one_call_counts_once(setup: JobSetup) -> None:
    job = await setup.claimed()
    assert await setup.finish(job, job) == {job.seq}
    assert await setup.counts() == {"completed": 1}


async def test_a_wake_up_does_not_touch_a_running_job_whose_time_was_in_the_past(setup: JobSetup) -> None:
    job = await setup.claimed(not_before=setup.clock() - timedelta(seconds=5))
    before = await dump(setup.database)
    assert await setup.wake_due() == 0
    assert await dump(setup.database) == before
    assert await setup.finish(job)
