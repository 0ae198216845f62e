"""Steps of a job: written when they begin and when they end, fenced, found again by the next attempt."""

import pytest

from conformance.desk import Desk
from conformance.dump import dump
from postroom.core.errors import BadInput, Canceled, LeaseLost
from postroom.core.jobs.job import Job
from postroom.jobs.run import JobRun
from postroom.store import job_steps
from postroom.store.engine.ids import new_id
from support.gates import LASTING


class Work:
    """Counts how often it is done; breaks when told to."""

    def __init__(self, result: object = "done") -> None:
        self.times = 0
        self.result = result
        self.error: Exception | None = None

    async def __call__(self) -> object:
        self.times += 1
        if self.error is not None:
            raise self.error
        return self.result


def _run(desk: Desk, job: Job) -> JobRun:
    return JobRun(job, desk.database, desk.clock, LASTING)


async def _again(desk: Desk, job: Job) -> Job:
    await desk.retry_later(job, seconds=0)
    await desk.wake_due()
    return await desk.claim_one()


async def test_a_step_is_recorded_with_its_attempt_its_times_and_its_result(desk: Desk) -> None:
    job = await desk.claimed()
    step = new_id()
    began = desk.clock()
    await desk.database.run(job_steps.begin_step(job, step, "fetch", began))
    ended = desk.clock.forward(2)
    await desk.database.run(job_steps.finish_step(job, step, {"n": [1]}, ended))
    (shown,) = (await desk.show(job.id)).steps
    assert (shown.name, shown.attempt, shown.started_at, shown.finished_at) == ("fetch", 1, began, ended)
    assert shown.result_json == '{"n":[1]}'
    assert await desk.database.run(job_steps.steps_of(job.id)) == [shown]


async def test_a_step_that_finished_is_not_done_again_by_the_next_attempt(desk: Desk) -> None:
    job = await desk.claimed()
    work = Work({"labels": ["a"]})
    assert await _run(desk, job).step("fetch", work) == {"labels": ["a"]}
    again = await _again(desk, job)
    assert await _run(desk, again).step("fetch", work) == {"labels": ["a"]}
    assert work.times == 1


async def test_a_step_that_broke_is_done_again_and_was_interrupted(desk: Desk) -> None:
    job = await desk.claimed()
    work = Work()
    work.error = OSError("gone")
    with pytest.raises(OSError, match="gone"):
        await _run(desk, job).step("send", work)
    work.error = None
    run = _run(desk, await _again(desk, job))
    assert await run.was_interrupted("send")
    assert not await run.was_interrupted("fetch")
    assert await run.step("send", work) == "done"
    assert work.times == 2


async def test_steps_are_found_again_after_a_rescue_and_after_a_retry_by_hand(desk: Desk) -> None:
    job = await desk.claimed()
    work = Work(None)
    await _run(desk, job).step("fetch", work)
    await desk.rescue_all()
    job = await desk.claim_one()
    assert await _run(desk, job).step("fetch", work) is None
    await desk.fail(job)
    await desk.retry(job.id)
    assert await _run(desk, await desk.claim_one()).step("fetch", work) is None
    assert work.times == 1


async def test_the_steps_of_one_job_are_not_anothers(desk: Desk) -> None:
    await desk.accept(desk.new(), desk.new())
    first, second = await desk.claim()
    work = Work()
    await _run(desk, first).step("fetch", work)
    await _run(desk, second).step("fetch", work)
    assert work.times == 2


async def test_a_job_that_is_to_be_canceled_learns_it_at_its_next_step(desk: Desk) -> None:
    job = await desk.claimed()
    run, work = _run(desk, job), Work()
    await run.step("fetch", work)
    await desk.cancel(job.id)
    before = await dump(desk.database, receipts=True)
    with pytest.raises(Canceled, match="on request"):
        await run.step("send", work)
    assert work.times == 1
    assert await dump(desk.database, receipts=True) == before


async def test_a_cancel_request_during_a_step_does_not_undo_what_was_done(desk: Desk) -> None:
    job = await desk.claimed()

    async def work() -> str:
        await desk.cancel(job.id)
        return "sent"

    assert await _run(desk, job).step("send", work) == "sent"
    assert (await desk.show(job.id)).steps[0].finished_at is not None


async def test_a_job_whose_heartbeat_told_of_a_cancel_stops_without_asking_the_database(desk: Desk) -> None:
    run = _run(desk, await desk.claimed())
    run.cancel_requested = True
    with pytest.raises(Canceled):
        await run.step("send", Work())


async def test_a_worker_that_was_taken_for_dead_does_no_further_step(desk: Desk) -> None:
    job = await desk.claimed()
    run, work = _run(desk, job), Work()
    await desk.rescue_all()
    with pytest.raises(LeaseLost):
        await run.step("send", work)
    assert work.times == 0


async def test_a_worker_that_was_taken_for_dead_during_a_step_records_no_result(desk: Desk) -> None:
    job = await desk.claimed()

    async def work() -> None:
        await desk.rescue_all()

    with pytest.raises(LeaseLost):
        await _run(desk, job).step("send", work)
    assert [(step.name, step.finished_at is None) for step in (await desk.show(job.id)).steps] == [
        ("send", True),
        ("rescued", False),
    ]


async def test_a_result_that_is_no_json_is_refused_and_the_step_counts_as_not_done(desk: Desk) -> None:
    job = await desk.claimed()
    with pytest.raises(BadInput):
        await _run(desk, job).step("fetch", Work(object()))
    assert (await desk.show(job.id)).steps[0].finished_at is None


@pytest.mark.parametrize("name", ["rescued", "retried"])
async def test_a_step_may_bear_the_name_of_an_event_and_is_done_all_the_same(desk: Desk, name: str) -> None:
    """What the engine tells among the steps is no result of the handler's."""
    job = await desk.claimed()
    if name == "rescued":
        await desk.rescue_all()
    else:
        await desk.fail(job)
        await desk.retry(job.id)
    assert await _run(desk, await desk.claim_one()).step(name, Work("mine")) == "mine"
