"""How a claimed job ends or is returned, and that its end can share a transaction with other writes."""

import asyncio
from datetime import timedelta

import pytest

from postroom.core.errors import LeaseLost
from postroom.core.jobs.job import Job
from postroom.store.engine.database import Script, transaction
from postroom.store.jobs import jobs as store
from support.store.dump import dump
from support.store.job_setup import JobSetup


async def test_a_finished_job_is_completed_and_says_when(setup: JobSetup) -> None:
    job = await setup.claimed()
    setup.clock.forward(2)
    assert await setup.finish(job) == {job.seq}
    shown = await setup.show(job.id)
    assert (shown.state, shown.attempts, shown.finished_at) == ("completed", 1, setup.clock())
    assert (shown.updated_at, shown.heartbeat_at) == (setup.clock(), None)


async def test_finishing_nothing_is_possible(setup: JobSetup) -> None:
    assert await setup.finish() == set()
    assert await setup.release() == 0


async def test_a_failed_job_keeps_its_reason(setup: JobSetup) -> None:
    job = await setup.claimed()
    assert await setup.fail(job, "no such label: «x»")
    shown = await setup.show(job.id)
    assert (shown.state, shown.last_error, shown.finished_at) == ("failed", "no such label: «x»", setup.clock())
    assert await setup.claim() == []


async def test_a_job_that_saw_its_cancel_request_is_canceled(setup: JobSetup) -> None:
    job = await setup.claimed()
    await setup.cancel(job.id)
    assert await setup.cancel_claimed(job)
    shown = await setup.show(job.id)
    assert (shown.state, shown.last_error, shown.finished_at) == ("canceled", None, setup.clock())


async def test_a_cancel_keeps_the_error_of_an_earlier_attempt(setup: JobSetup) -> None:
    await setup.retry_later(await setup.claimed(), seconds=0, error="first")
    await setup.wake_due()
    job = await setup.claim_one()
    assert await setup.cancel_claimed(job)
    assert (await setup.show(job.id)).last_error == "first"


async def test_both_databases_show_the_same_of_a_job_that_completed_after_a_failed_attempt(setup: JobSetup) -> None:
    """The error of an attempt that was made good stays readable."""
    await setup.retry_later(await setup.claimed(), seconds=0, error="first")
    await setup.wake_due()
    job = await setup.claim_one()
    await setup.finish(job)
    assert (await setup.show(job.id)).last_error == "first"


@pytest.mark.parametrize("end", ["finish", "fail", "cancel_claimed", "rescue"])
async def test_a_job_that_has_ended_is_no_longer_asked_to_cancel(setup: JobSetup, end: str) -> None:
    job = await setup.claimed()
    await setup.cancel(job.id)
    match end:
        case "finish":
            await setup.finish(job)
        case "fail":
            await setup.fail(job)
        case "cancel_claimed":
            await setup.cancel_claimed(job)
        case _:
            await setup.rescue_all()
    assert not (await setup.show(job.id)).cancel_requested


async def test_a_job_to_be_retried_sleeps_until_then_and_has_used_an_attempt(setup: JobSetup) -> None:
    job = await setup.claimed()
    assert await setup.retry_later(job, seconds=10, error="rate limited")
    shown = await setup.show(job.id)
    assert (shown.state, shown.attempts, shown.last_error) == ("queued", 1, "rate limited")
    assert shown.not_before == setup.clock() + timedelta(seconds=10)
    assert await setup.claim() == []
    setup.clock.forward(10)
    assert await setup.wake_due() == 1
    assert (await setup.claim_one()).attempts == 2


async def test_a_retried_job_keeps_its_place_in_the_order(setup: JobSetup) -> None:
    first = await setup.claimed()
    await setup.enqueue()
    await setup.retry_later(first, seconds=0)
    await setup.wake_due()
    assert (await setup.claim_one()).id == first.id


async def test_a_parked_job_sleeps_without_having_used_an_attempt(setup: JobSetup) -> None:
    job = await setup.claimed(not_before=setup.clock())
    assert await setup.park(job)
    shown = await setup.show(job.id)
    assert (shown.state, shown.attempts, shown.parked_by) == ("queued", 0, "account")
    assert (shown.last_error, shown.not_before) == ("consent lost", None)
    setup.clock.forward(10**6)
    assert await setup.wake_due() == 0
    assert await setup.claim() == []
    assert await setup.database.run(store.next_due()) is None


async def test_a_job_parked_for_a_while_looks_again_without_having_used_an_attempt(setup: JobSetup) -> None:
    job = await setup.claimed(max_attempts=1)
    for _ in range(3):
        assert await setup.park(job, seconds=60)
        setup.clock.forward(59)
        assert await setup.wake_due() == 0
        assert (await setup.show(job.id)).parked_by == "account"
        setup.clock.forward(1)
        assert await setup.wake_due() == 1
        assert (await setup.show(job.id)).parked_by is None
        job = await setup.claim_one()
        assert job.attempts == 1


async def test_a_job_parked_for_a_while_is_released_before_that_by_its_key(setup: JobSetup) -> None:
    job = await setup.claimed()
    await setup.park(job, seconds=60)
    assert await setup.unpark() == 1
    shown = await setup.show(job.id)
    assert (shown.parked_by, shown.not_before) == (None, None)
    assert (await setup.claim_one()).id == job.id


async def test_unparking_makes_claimable_what_was_parked_under_that_key_only(setup: JobSetup) -> None:
    await setup.accept(*(setup.new() for _ in range(3)))
    first, second, third = await setup.claim()
    await setup.park(first, "a")
    await setup.park(second, "b")
    await setup.park(third, "a")
    assert await setup.unpark("a") == 2
    assert await setup.unpark("a") == 0
    claimed = await setup.claim()
    assert [(job.id, job.attempts) for job in claimed] == [(first.id, 1), (third.id, 1)]
    assert (await setup.show(first.id)).parked_by is None
    assert (await setup.show(second.id)).parked_by == "b"


async def test_a_job_may_be_parked_on_its_last_attempt(setup: JobSetup) -> None:
    job = await setup.claimed(max_attempts=1)
    await setup.park(job)
    await setup.unpark()
    assert (await setup.claim_one()).is_last_attempt


async def test_a_released_job_is_claimable_at_once_and_has_used_no_attempt(setup: JobSetup) -> None:
    job = await setup.claimed(max_attempts=1)
    assert await setup.release(job) == 1
    shown = await setup.show(job.id)
    assert (shown.state, shown.attempts) == ("queued", 0)
    assert (await setup.claim_one()).attempts == 1


@transaction
def _end_with(job: Job, effect: str, setup: JobSetup, then: Exception | None = None) -> Script[None]:
    """A handler's last transaction: its effect, here another job, and the end of its own."""
    yield from store.enqueue_many.script([setup.new(key=effect)], setup.clock())
    yield from store.completing_one(job, setup.clock())
    if then is not None:
        raise then


async def test_the_end_of_a_job_and_its_effects_are_one(setup: JobSetup) -> None:
    job = await setup.claimed("sync", key="k")
    await setup.database.run(_end_with(job, "effect", setup))
    assert await setup.state(job.id) == "completed"
    assert (await setup.enqueue(key="effect")).duplicate
    assert not (await setup.enqueue("sync", key="k")).duplicate, "the key ended with the job"


async def test_when_the_script_raises_neither_the_end_nor_the_effects_happen(setup: JobSetup) -> None:
    job = await setup.claimed("sync", key="k")
    before = await dump(setup.database, receipts=True)
    with pytest.raises(ZeroDivisionError, match="by design"):
        await setup.database.run(_end_with(job, "effect", setup, ZeroDivisionError("by design")))
    assert await dump(setup.database, receipts=True) == before
    assert await setup.finish(job)


async def test_a_stale_owners_effects_do_not_happen(setup: JobSetup) -> None:
    job = await setup.claimed()
    await setup.rescue_all()
    before = await dump(setup.database, receipts=True)
    with pytest.raises(LeaseLost):
        await setup.database.run(_end_with(job, "effect", setup))
    assert await dump(setup.database, receipts=True) == before


async def test_a_finish_and_a_rescue_at_once_end_the_job_once(setup: JobSetup) -> None:
    for _ in range(10):
        job = await setup.claimed(max_attempts=1)
        finished, rescue = await asyncio.gather(setup.finish(job), setup.rescue_all())
        assert len(finished) + rescue.ended == 1
        assert await setup.state(job.id) == ("completed" if finished else "failed")
