"""Cancel and retry by a user, in every state."""

import asyncio
from datetime import timedelta

import pytest

from postroom.core.errors import IllegalMove, NotFound
from postroom.core.jobs.job import Job
from postroom.store.engine.codecs import from_json
from postroom.store.engine.ids import new_id
from postroom.store.jobs import jobs as store
from support.patience import PATIENCE_S
from support.store.dump import dump
from support.store.job_setup import JobSetup, listen


async def _ended(setup: JobSetup, state: str, type: str = "plain") -> Job:
    job = await setup.claimed(type)
    match state:
        case "completed":
            await setup.finish(job)
        case "failed":
            await setup.fail(job)
        case _:
            await setup.cancel_claimed(job)
    return job


async def test_a_queued_job_is_canceled_at_once(setup: JobSetup) -> None:
    accepted = await setup.enqueue()
    setup.clock.forward(1)
    assert await setup.cancel(accepted.id) == "canceled"
    shown = await setup.show(accepted.id)
    assert (shown.state, shown.attempts, shown.finished_at) == ("canceled", 0, setup.clock())
    assert await setup.claim() == []


async def test_a_sleeping_job_is_canceled_at_once_and_never_wakes(setup: JobSetup) -> None:
    accepted = await setup.enqueue(not_before=setup.clock() + timedelta(seconds=1))
    assert await setup.cancel(accepted.id) == "canceled"
    setup.clock.forward(2)
    assert await setup.wake_due() == 0
    assert await setup.database.run(store.next_due()) is None


async def test_a_parked_job_is_canceled_at_once_and_is_not_unparked(setup: JobSetup) -> None:
    job = await setup.claimed()
    await setup.park(job)
    assert await setup.cancel(job.id) == "canceled"
    assert await setup.unpark() == 0
    shown = await setup.show(job.id)
    assert (shown.state, shown.parked_by) == ("canceled", None)


async def test_a_running_job_is_asked_to_stop_and_runs_on(setup: JobSetup) -> None:
    job = await setup.claimed()
    assert await setup.cancel(job.id) == "requested"
    shown = await setup.show(job.id)
    assert (shown.state, shown.cancel_requested) == ("running", True)
    assert await setup.cancel(job.id) == "requested"
    assert await setup.finish(job), "what is done is done"


@pytest.mark.parametrize("state", ["completed", "failed", "canceled"])
async def test_a_job_that_has_ended_cannot_be_canceled(setup: JobSetup, state: str) -> None:
    job = await _ended(setup, state)
    before = await dump(setup.database, receipts=True)
    with pytest.raises(IllegalMove, match=f"job is {state} and cannot become canceled"):
        await setup.cancel(job.id)
    assert await dump(setup.database, receipts=True) == before


@pytest.mark.parametrize("verb", ["cancel", "retry"])
async def test_a_job_that_is_not_there_is_not_found(setup: JobSetup, verb: str) -> None:
    id = new_id()
    with pytest.raises(NotFound, match=str(id)):
        await (setup.cancel(id) if verb == "cancel" else setup.retry(id))


@pytest.mark.parametrize("state", ["failed", "canceled"])
async def test_a_job_that_failed_or_was_canceled_is_queued_again_with_all_its_attempts(
    setup: JobSetup, state: str
) -> None:
    job = await _ended(setup, state)
    setup.clock.forward(5)
    await setup.retry(job.id)
    shown = await setup.show(job.id)
    assert (shown.state, shown.attempts, shown.finished_at, shown.not_before) == ("queued", 0, None, None)
    assert not shown.cancel_requested
    assert shown.steps[-1].name == "retried"
    assert from_json(shown.steps[-1].result_json or "") == {"by": "user"}
    again = await setup.claim_one()
    assert (again.id, again.attempts) == (job.id, 1)


async def test_a_retried_job_can_fail_and_be_retried_as_often_as_it_takes(setup: JobSetup) -> None:
    job = await setup.claimed()
    for n in range(3):
        await setup.fail(job, f"failure {n}")
        await setup.retry(job.id)
        assert (await setup.show(job.id)).last_error == f"failure {n}"
        job = await setup.claim_one()
    assert await setup.finish(job)


async def test_a_canceled_sleeper_that_is_retried_is_due_at_once(setup: JobSetup) -> None:
    accepted = await setup.enqueue(not_before=setup.clock() + timedelta(days=1))
    await setup.cancel(accepted.id)
    await setup.retry(accepted.id)
    assert (await setup.claim_one()).id == accepted.id


async def test_a_sleeping_job_is_made_due_at_once(setup: JobSetup) -> None:
    accepted = await setup.enqueue(not_before=setup.clock() + timedelta(days=1))
    await setup.retry(accepted.id)
    assert (await setup.show(accepted.id)).not_before is None
    assert (await setup.claim_one()).id == accepted.id


async def test_a_parked_job_is_made_due_at_once(setup: JobSetup) -> None:
    job = await setup.claimed()
    await setup.park(job)
    await setup.retry(job.id)
    assert (await setup.show(job.id)).parked_by is None
    assert (await setup.claim_one()).attempts == 1
    assert await setup.unpark() == 0


async def test_a_retry_of_a_job_that_waits_its_turn_changes_nothing(setup: JobSetup) -> None:
    accepted = await setup.enqueue()
    before = await dump(setup.database)
    await setup.retry(accepted.id)
    assert await dump(setup.database) == before


async def test_a_running_job_cannot_be_retried(setup: JobSetup) -> None:
    job = await setup.claimed()
    before = await dump(setup.database, receipts=True)
    with pytest.raises(IllegalMove, match="cancel it first"):
        await setup.retry(job.id)
    assert await dump(setup.database, receipts=True) == before


async def test_a_completed_job_cannot_be_retried(setup: JobSetup) -> None:
    job = await _ended(setup, "completed")
    before = await dump(setup.database, receipts=True)
    with pytest.raises(IllegalMove, match="completed and cannot become queued"):
        await setup.retry(job.id)
    assert await dump(setup.database, receipts=True) == before


async def test_a_retry_wakes_workers(setup: JobSetup) -> None:
    job = await _ended(setup, "failed")
    heard = await listen(setup.database, store.CHANNEL)
    await setup.retry(job.id)
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == "0"


@pytest.mark.parametrize("pause", ["retry_later", "release"])
async def test_a_cancel_request_outlives_the_attempt_that_did_not_see_it(setup: JobSetup, pause: str) -> None:
    """The attempt ended some other way before its next step: the wish stands and is heard by the next attempt."""
    job = await setup.claimed()
    await setup.cancel(job.id)
    await (setup.retry_later(job, seconds=0) if pause == "retry_later" else setup.release(job))
    await setup.wake_due()
    shown = await setup.show(job.id)
    assert shown.state == "canceled" or shown.cancel_requested


async def test_a_cancel_and_a_claim_at_once_leave_the_job_canceled_or_asked_to_cancel(setup: JobSetup) -> None:
    for _ in range(10):
        accepted = await setup.enqueue()
        answer, jobs = await asyncio.gather(setup.cancel(accepted.id), setup.claim())
        shown = await setup.show(accepted.id)
        if answer == "canceled":
            assert (shown.state, jobs) == ("canceled", [])
        else:
            assert (shown.state, shown.cancel_requested, len(jobs)) == ("running", True, 1)
            await setup.cancel_claimed(jobs[0])


async def test_two_retries_at_once_queue_the_job_once(setup: JobSetup) -> None:
    for _ in range(10):
        job = await _ended(setup, "failed")
        await asyncio.gather(setup.retry(job.id), setup.retry(job.id))
        (again,) = await setup.claim()
        assert again.id == job.id
        await setup.finish(again)


@pytest.mark.parametrize("how", ["retried", "parked", "released"])
async def test_a_running_job_that_was_canceled_ends_so_when_it_would_be_queued_again(setup: JobSetup, how: str) -> None:
    accepted = await setup.enqueue()
    job = await setup.claim_one()
    assert await setup.cancel(accepted.id) == "requested"
    match how:
        case "retried":
            assert await setup.retry_later(job, 5)
        case "parked":
            assert await setup.park(job, "consent")
        case _:
            assert await setup.release(job) == 1
    assert await setup.state(accepted.id) == "canceled"
    assert await setup.claim() == []


async def test_a_last_attempt_is_not_tried_again(setup: JobSetup) -> None:
    await setup.enqueue(max_attempts=1)
    job = await setup.claim_one()
    assert not await setup.retry_later(job, 5)
    assert await setup.state(job.id) == "running"
