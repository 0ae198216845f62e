"""How a claimed job ends or goes back, and that its end can be one with other writes."""

import asyncio
from datetime import timedelta

import pytest

from conformance.desk import Desk
from conformance.dump import dump
from postroom.core.errors import LeaseLost
from postroom.core.jobs.job import Job
from postroom.store import jobs as store
from postroom.store.engine.database import Script, transaction


async def test_a_finished_job_is_completed_and_says_when(desk: Desk) -> None:
    job = await desk.claimed()
    desk.clock.forward(2)
    assert await desk.finish(job) == {job.seq}
    shown = await desk.show(job.id)
    assert (shown.state, shown.attempts, shown.finished_at) == ("completed", 1, desk.clock())
    assert (shown.updated_at, shown.heartbeat_at) == (desk.clock(), None)


async def test_finishing_nothing_is_possible(desk: Desk) -> None:
    assert await desk.finish() == set()
    assert await desk.release() == 0


async def test_a_failed_job_keeps_its_reason(desk: Desk) -> None:
    job = await desk.claimed()
    assert await desk.fail(job, "no such label: «x»")
    shown = await desk.show(job.id)
    assert (shown.state, shown.last_error, shown.finished_at) == ("failed", "no such label: «x»", desk.clock())
    assert await desk.claim() == []


async def test_a_job_that_saw_its_cancel_request_is_canceled(desk: Desk) -> None:
    job = await desk.claimed()
    await desk.cancel(job.id)
    assert await desk.cancel_claimed(job)
    shown = await desk.show(job.id)
    assert (shown.state, shown.last_error, shown.finished_at) == ("canceled", None, desk.clock())


async def test_a_cancel_keeps_the_error_of_an_earlier_attempt(desk: Desk) -> None:
    await desk.retry_later(await desk.claimed(), seconds=0, error="first")
    await desk.wake_due()
    job = await desk.claim_one()
    assert await desk.cancel_claimed(job)
    assert (await desk.show(job.id)).last_error == "first"


async def test_both_databases_show_the_same_of_a_job_that_completed_after_a_failed_attempt(desk: Desk) -> None:
    """The error of an attempt that was made good stays readable."""
    await desk.retry_later(await desk.claimed(), seconds=0, error="first")
    await desk.wake_due()
    job = await desk.claim_one()
    await desk.finish(job)
    assert (await desk.show(job.id)).last_error == "first"


@pytest.mark.parametrize("end", ["finish", "fail", "cancel_claimed", "rescue"])
async def test_a_job_that_has_ended_is_no_longer_asked_to_cancel(desk: Desk, end: str) -> None:
    job = await desk.claimed()
    await desk.cancel(job.id)
    match end:
        case "finish":
            await desk.finish(job)
        case "fail":
            await desk.fail(job)
        case "cancel_claimed":
            await desk.cancel_claimed(job)
        case _:
            await desk.rescue_all()
    assert not (await desk.show(job.id)).cancel_requested


async def test_a_job_to_be_retried_sleeps_until_then_and_has_used_an_attempt(desk: Desk) -> None:
    job = await desk.claimed()
    assert await desk.retry_later(job, seconds=10, error="rate limited")
    shown = await desk.show(job.id)
    assert (shown.state, shown.attempts, shown.last_error) == ("queued", 1, "rate limited")
    assert shown.not_before == desk.clock() + timedelta(seconds=10)
    assert await desk.claim() == []
    desk.clock.forward(10)
    assert await desk.wake_due() == 1
    assert (await desk.claim_one()).attempts == 2


async def test_a_retried_job_keeps_its_place_in_the_order(desk: Desk) -> None:
    first = await desk.claimed()
    await desk.enqueue()
    await desk.retry_later(first, seconds=0)
    await desk.wake_due()
    assert (await desk.claim_one()).id == first.id


async def test_a_parked_job_sleeps_without_having_used_an_attempt(desk: Desk) -> None:
    job = await desk.claimed(not_before=desk.clock())
    assert await desk.park(job)
    shown = await desk.show(job.id)
    assert (shown.state, shown.attempts, shown.parked_by) == ("queued", 0, "account")
    assert (shown.last_error, shown.not_before) == ("consent lost", None)
    desk.clock.forward(10**6)
    assert await desk.wake_due() == 0
    assert await desk.claim() == []
    assert await desk.database.run(store.next_due()) is None


async def test_unparking_makes_claimable_what_was_parked_under_that_key_only(desk: Desk) -> None:
    await desk.accept(*(desk.new() for _ in range(3)))
    first, second, third = await desk.claim()
    await desk.park(first, "a")
    await desk.park(second, "b")
    await desk.park(third, "a")
    assert await desk.unpark("a") == 2
    assert await desk.unpark("a") == 0
    claimed = await desk.claim()
    assert [(job.id, job.attempts) for job in claimed] == [(first.id, 1), (third.id, 1)]
    assert (await desk.show(first.id)).parked_by is None
    assert (await desk.show(second.id)).parked_by == "b"


async def test_a_job_may_be_parked_on_its_last_attempt(desk: Desk) -> None:
    job = await desk.claimed(max_attempts=1)
    await desk.park(job)
    await desk.unpark()
    assert (await desk.claim_one()).is_last_attempt


async def test_a_released_job_is_claimable_at_once_and_has_used_no_attempt(desk: Desk) -> None:
    job = await desk.claimed(max_attempts=1)
    assert await desk.release(job) == 1
    shown = await desk.show(job.id)
    assert (shown.state, shown.attempts) == ("queued", 0)
    assert (await desk.claim_one()).attempts == 1


@transaction
def _end_with(job: Job, effect: str, desk: Desk, then: Exception | None = None) -> Script[None]:
    """A handler's last transaction: its effect, here another job, and the end of its own."""
    yield from store.enqueue_many.script([desk.new(key=effect)], desk.clock())
    yield from store.completing_one(job, desk.clock())
    if then is not None:
        raise then


async def test_the_end_of_a_job_and_its_effects_are_one(desk: Desk) -> None:
    job = await desk.claimed("sync", key="k")
    await desk.database.run(_end_with(job, "effect", desk))
    assert await desk.state(job.id) == "completed"
    assert (await desk.enqueue(key="effect")).duplicate
    assert not (await desk.enqueue("sync", key="k")).duplicate, "the key ended with the job"


async def test_when_the_script_raises_neither_the_end_nor_the_effects_happen(desk: Desk) -> None:
    job = await desk.claimed("sync", key="k")
    before = await dump(desk.database, receipts=True)
    with pytest.raises(ZeroDivisionError, match="by design"):
        await desk.database.run(_end_with(job, "effect", desk, ZeroDivisionError("by design")))
    assert await dump(desk.database, receipts=True) == before
    assert await desk.finish(job)


async def test_a_stale_owners_effects_do_not_happen(desk: Desk) -> None:
    job = await desk.claimed()
    await desk.rescue_all()
    before = await dump(desk.database, receipts=True)
    with pytest.raises(LeaseLost):
        await desk.database.run(_end_with(job, "effect", desk))
    assert await dump(desk.database, receipts=True) == before


async def test_a_finish_and_a_rescue_at_once_end_the_job_once(desk: Desk) -> None:
    for _ in range(10):
        job = await desk.claimed(max_attempts=1)
        finished, rescue = await asyncio.gather(desk.finish(job), desk.rescue_all())
        assert len(finished) + rescue.ended == 1
        assert await desk.state(job.id) == ("completed" if finished else "failed")
