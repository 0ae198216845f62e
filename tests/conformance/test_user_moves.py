"""What a person may ask for: cancel and retry, in every state."""

import asyncio
from datetime import timedelta

import pytest

from conformance.desk import Desk, listen
from conformance.dump import dump
from postroom.core.errors import IllegalMove, NotFound
from postroom.core.jobs.job import Job
from postroom.store import jobs as store
from postroom.store.engine.codecs import from_json
from postroom.store.engine.ids import new_id
from support.patience import PATIENCE_S


async def _ended(desk: Desk, state: str, type: str = "plain") -> Job:
    job = await desk.claimed(type)
    match state:
        case "completed":
            await desk.finish(job)
        case "failed":
            await desk.fail(job)
        case _:
            await desk.cancel_claimed(job)
    return job


async def test_a_queued_job_is_canceled_at_once(desk: Desk) -> None:
    accepted = await desk.enqueue()
    desk.clock.forward(1)
    assert await desk.cancel(accepted.id) == "canceled"
    shown = await desk.show(accepted.id)
    assert (shown.state, shown.attempts, shown.finished_at) == ("canceled", 0, desk.clock())
    assert await desk.claim() == []


async def test_a_sleeping_job_is_canceled_at_once_and_never_wakes(desk: Desk) -> None:
    accepted = await desk.enqueue(not_before=desk.clock() + timedelta(seconds=1))
    assert await desk.cancel(accepted.id) == "canceled"
    desk.clock.forward(2)
    assert await desk.wake_due() == 0
    assert await desk.database.run(store.next_due()) is None


async def test_a_parked_job_is_canceled_at_once_and_is_not_unparked(desk: Desk) -> None:
    job = await desk.claimed()
    await desk.park(job)
    assert await desk.cancel(job.id) == "canceled"
    assert await desk.unpark() == 0
    shown = await desk.show(job.id)
    assert (shown.state, shown.parked_by) == ("canceled", None)


async def test_a_running_job_is_asked_to_stop_and_runs_on(desk: Desk) -> None:
    job = await desk.claimed()
    assert await desk.cancel(job.id) == "requested"
    shown = await desk.show(job.id)
    assert (shown.state, shown.cancel_requested) == ("running", True)
    assert await desk.cancel(job.id) == "requested"
    assert await desk.finish(job), "what is done is done"


@pytest.mark.parametrize("state", ["completed", "failed", "canceled"])
async def test_a_job_that_has_ended_cannot_be_canceled(desk: Desk, state: str) -> None:
    job = await _ended(desk, state)
    before = await dump(desk.database, receipts=True)
    with pytest.raises(IllegalMove, match=f"job is {state} and cannot become canceled"):
        await desk.cancel(job.id)
    assert await dump(desk.database, receipts=True) == before


@pytest.mark.parametrize("verb", ["cancel", "retry"])
async def test_a_job_that_is_not_there_is_not_found(desk: Desk, verb: str) -> None:
    id = new_id()
    with pytest.raises(NotFound, match=str(id)):
        await (desk.cancel(id) if verb == "cancel" else desk.retry(id))


@pytest.mark.parametrize("state", ["failed", "canceled"])
async def test_a_job_that_failed_or_was_canceled_is_queued_again_with_all_its_attempts(desk: Desk, state: str) -> None:
    job = await _ended(desk, state)
    desk.clock.forward(5)
    await desk.retry(job.id)
    shown = await desk.show(job.id)
    assert (shown.state, shown.attempts, shown.finished_at, shown.not_before) == ("queued", 0, None, None)
    assert not shown.cancel_requested
    assert shown.steps[-1].name == "retried"
    assert from_json(shown.steps[-1].result_json or "") == {"by": "user"}
    again = await desk.claim_one()
    assert (again.id, again.attempts) == (job.id, 1)


async def test_a_retried_job_can_fail_and_be_retried_as_often_as_it_takes(desk: Desk) -> None:
    job = await desk.claimed()
    for n in range(3):
        await desk.fail(job, f"failure {n}")
        await desk.retry(job.id)
        assert (await desk.show(job.id)).last_error == f"failure {n}"
        job = await desk.claim_one()
    assert await desk.finish(job)


async def test_a_canceled_sleeper_that_is_retried_is_due_at_once(desk: Desk) -> None:
    accepted = await desk.enqueue(not_before=desk.clock() + timedelta(days=1))
    await desk.cancel(accepted.id)
    await desk.retry(accepted.id)
    assert (await desk.claim_one()).id == accepted.id


async def test_a_sleeping_job_is_made_due_at_once(desk: Desk) -> None:
    accepted = await desk.enqueue(not_before=desk.clock() + timedelta(days=1))
    await desk.retry(accepted.id)
    assert (await desk.show(accepted.id)).not_before is None
    assert (await desk.claim_one()).id == accepted.id


async def test_a_parked_job_is_made_due_at_once(desk: Desk) -> None:
    job = await desk.claimed()
    await desk.park(job)
    await desk.retry(job.id)
    assert (await desk.show(job.id)).parked_by is None
    assert (await desk.claim_one()).attempts == 1
    assert await desk.unpark() == 0


async def test_a_retry_of_a_job_that_waits_its_turn_changes_nothing(desk: Desk) -> None:
    accepted = await desk.enqueue()
    before = await dump(desk.database)
    await desk.retry(accepted.id)
    assert await dump(desk.database) == before


async def test_a_running_job_cannot_be_retried(desk: Desk) -> None:
    job = await desk.claimed()
    before = await dump(desk.database, receipts=True)
    with pytest.raises(IllegalMove, match="cancel it first"):
        await desk.retry(job.id)
    assert await dump(desk.database, receipts=True) == before


async def test_a_completed_job_cannot_be_retried(desk: Desk) -> None:
    job = await _ended(desk, "completed")
    before = await dump(desk.database, receipts=True)
    with pytest.raises(IllegalMove, match="completed and cannot become queued"):
        await desk.retry(job.id)
    assert await dump(desk.database, receipts=True) == before


async def test_a_retry_wakes_workers(desk: Desk) -> None:
    job = await _ended(desk, "failed")
    heard = await listen(desk.database, store.CHANNEL)
    await desk.retry(job.id)
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == "0"


@pytest.mark.parametrize("pause", ["retry_later", "release"])
async def test_a_cancel_request_outlives_the_attempt_that_did_not_see_it(desk: Desk, pause: str) -> None:
    """The attempt ended some other way before its next step: the wish stands and is heard by the next attempt."""
    job = await desk.claimed()
    await desk.cancel(job.id)
    await (desk.retry_later(job, seconds=0) if pause == "retry_later" else desk.release(job))
    await desk.wake_due()
    shown = await desk.show(job.id)
    assert shown.state == "canceled" or shown.cancel_requested


async def test_a_cancel_and_a_claim_at_once_leave_the_job_canceled_or_asked_to_cancel(desk: Desk) -> None:
    for _ in range(10):
        accepted = await desk.enqueue()
        answer, jobs = await asyncio.gather(desk.cancel(accepted.id), desk.claim())
        shown = await desk.show(accepted.id)
        if answer == "canceled":
            assert (shown.state, jobs) == ("canceled", [])
        else:
            assert (shown.state, shown.cancel_requested, len(jobs)) == ("running", True, 1)
            await desk.cancel_claimed(jobs[0])


async def test_two_retries_at_once_queue_the_job_once(desk: Desk) -> None:
    for _ in range(10):
        job = await _ended(desk, "failed")
        await asyncio.gather(desk.retry(job.id), desk.retry(job.id))
        (again,) = await desk.claim()
        assert again.id == job.id
        await desk.finish(again)


@pytest.mark.parametrize("how", ["retried", "parked", "released"])
async def test_a_running_job_that_was_canceled_ends_so_when_it_would_be_queued_again(desk: Desk, how: str) -> None:
    accepted = await desk.enqueue()
    job = await desk.claim_one()
    assert await desk.cancel(accepted.id) == "requested"
    match how:
        case "retried":
            assert await desk.retry_later(job, 5)
        case "parked":
            assert await desk.park(job, "consent")
        case _:
            assert await desk.release(job) == 1
    assert await desk.state(accepted.id) == "canceled"
    assert await desk.claim() == []


async def test_a_last_attempt_is_not_tried_again(desk: Desk) -> None:
    await desk.enqueue(max_attempts=1)
    job = await desk.claim_one()
    assert not await desk.retry_later(job, 5)
    assert await desk.state(job.id) == "running"
