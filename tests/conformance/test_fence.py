"""A stale owner changes nothing: every verb on claimed work, with every kind of stale claim."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from conformance.desk import Desk
from conformance.dump import dump
from postroom.core.errors import LeaseLost
from postroom.core.jobs.job import Job
from postroom.store import job_steps
from postroom.store import jobs as store
from postroom.store.engine.database import Script, transaction
from postroom.store.engine.ids import new_id

Act = Callable[[Desk, Job], Awaitable[object]]
ACTS: dict[str, Act] = {
    "finish": lambda desk, job: desk.finish(job),
    "fail": lambda desk, job: desk.fail(job),
    "cancel_claimed": lambda desk, job: desk.cancel_claimed(job),
    "retry_later": lambda desk, job: desk.retry_later(job),
    "park": lambda desk, job: desk.park(job),
    "release": lambda desk, job: desk.release(job),
}
RAISING: dict[str, Act] = {
    "begin_step": lambda desk, job: desk.database.run(job_steps.begin_step(job, new_id(), "fetch", desk.clock())),
    "finish_step": lambda desk, job: desk.database.run(job_steps.finish_step(job, new_id(), {}, desk.clock())),
    "completing_one": lambda desk, job: desk.database.run(_complete(job, desk)),
}


@transaction
def _complete(job: Job, desk: Desk) -> Script[None]:
    yield from store.completing_one(job, desk.clock())


async def _wrong_token(desk: Desk) -> Job:
    return (await desk.claimed("sync", key="k"))._replace(token=await desk.open_lease())


async def _earlier_attempt(desk: Desk) -> Job:
    """The same lease has claimed the same job again."""
    job = await desk.claimed("sync", key="k")
    await desk.retry_later(job, seconds=0)
    await desk.wake_due()
    await desk.claim_one()
    return job


async def _later_attempt(desk: Desk) -> Job:
    job = await desk.claimed("sync", key="k")
    return job._replace(attempts=job.attempts + 1)


async def _rescued(desk: Desk) -> Job:
    job = await desk.claimed("sync", key="k")
    await desk.rescue_all()
    return job


async def _taken_over(desk: Desk) -> Job:
    job = await _rescued(desk)
    await desk.claim_one()
    return job


async def _ended_by_the_new_owner(desk: Desk) -> Job:
    job = await _rescued(desk)
    await desk.finish(await desk.claim_one())
    return job


async def _already_finished(desk: Desk) -> Job:
    job = await desk.claimed("sync", key="k")
    await desk.finish(job)
    return job


async def _released(desk: Desk) -> Job:
    """Released, and claimed again under another lease: the attempts are equal, only the token differs."""
    job = await desk.claimed("sync", key="k")
    await desk.release(job)
    await desk.claim_one(await desk.open_lease())
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
    desk: Desk, become_stale: Callable[[Desk], Awaitable[Job]]
) -> None:
    job = await become_stale(desk)
    before = await dump(desk.database)
    for name, act in ACTS.items():
        assert not await act(desk, job), name
        assert await dump(desk.database) == before, name
    for name, act in RAISING.items():
        with pytest.raises(LeaseLost, match="taken over by another worker"):
            await act(desk, job)
        assert await dump(desk.database) == before, name


@pytest.mark.parametrize("name", [*ACTS, *RAISING])
async def test_the_owner_is_not_refused(desk: Desk, name: str) -> None:
    """What the fence refuses to others it grants to the owner: without this, the test above could pass for nothing."""
    job = await desk.claimed()
    before = await dump(desk.database)
    answer = await (ACTS | RAISING)[name](desk, job)
    assert answer or name in RAISING
    assert (await dump(desk.database) != before) == (name != "finish_step")


async def test_of_many_finishes_only_those_that_are_ours_happen(desk: Desk) -> None:
    await desk.accept(*(desk.new() for _ in range(3)))
    first, second, third = await desk.claim()
    done = await desk.finish(first, second._replace(token=new_id()), third)
    assert done == {first.seq, third.seq}
    assert [await desk.state(job.id) for job in (first, second, third)] == ["completed", "running", "completed"]


async def test_of_many_releases_only_those_that_are_ours_happen(desk: Desk) -> None:
    await desk.accept(*(desk.new() for _ in range(3)))
    first, second, third = await desk.claim()
    assert await desk.release(first._replace(attempts=9), second, third._replace(token=new_id())) == 1
    assert [await desk.state(job.id) for job in (first, second, third)] == ["running", "queued", "running"]


async def test_the_same_finish_twice_in_one_call_counts_once(desk: Desk) -> None:
    job = await desk.claimed()
    assert await desk.finish(job, job) == {job.seq}
    assert await desk.counts() == {"completed": 1}


async def test_a_wake_up_does_not_touch_a_running_job_whose_time_was_in_the_past(desk: Desk) -> None:
    job = await desk.claimed(not_before=desk.clock() - timedelta(seconds=5))
    before = await dump(desk.database)
    assert await desk.wake_due() == 0
    assert await dump(desk.database) == before
    assert await desk.finish(job)
