"""Steps of a job: recorded at their beginning and end, fenced, found by the next attempt."""

import pytest

from postroom.core.errors import BadInput, Canceled, LeaseLost
from postroom.core.jobs.job import Job
from postroom.jobs.run import JobRun
from postroom.store.engine.ids import new_id
from postroom.store.jobs import job_steps
from support.gates import LASTING
from support.store.dump import dump
from support.store.job_setup import JobSetup


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


def _run(setup: JobSetup, job: Job) -> JobRun:
    return JobRun(job, setup.database, setup.clock, LASTING)


async def _again(setup: JobSetup, job: Job) -> Job:
    await setup.retry_later(job, seconds=0)
    await setup.wake_due()
    return await setup.claim_one()


async def test_a_step_is_recorded_with_its_attempt_its_times_and_its_result(setup: JobSetup) -> None:
    job = await setup.claimed()
    step = new_id()
    began = setup.clock()
    await setup.database.run(job_steps.begin_step(job, step, "fetch", began))
    ended = setup.clock.forward(2)
    await setup.database.run(job_steps.finish_step(job, step, {"n": [1]}, ended))
    (shown,) = (await setup.show(job.id)).steps
    assert (shown.name, shown.attempt, shown.started_at, shown.finished_at) == ("fetch", 1, began, ended)
    assert shown.result_json == '{"n":[1]}'
    assert await setup.database.run(job_steps.steps_of(job.id)) == [shown]


async def test_a_step_that_finished_is_not_done_again_by_the_next_attempt(setup: JobSetup) -> None:
    job = await setup.claimed()
    work = Work({"labels": ["a"]})
    assert await _run(setup, job).step("fetch", work) == {"labels": ["a"]}
    again = await _again(setup, job)
    assert await _run(setup, again).step("fetch", work) == {"labels": ["a"]}
    assert work.times == 1


async def test_a_step_that_broke_is_done_again_and_was_interrupted(setup: JobSetup) -> None:
    job = await setup.claimed()
    work = Work()
    work.error = OSError("gone")
    with pytest.raises(OSError, match="gone"):
        await _run(setup, job).step("send", work)
    work.error = None
    run = _run(setup, await _again(setup, job))
    assert await run.was_interrupted("send")
    assert not await run.was_interrupted("fetch")
    assert await run.step("send", work) == "done"
    assert work.times == 2


async def test_steps_are_found_again_after_a_rescue_and_after_a_retry_by_hand(setup: JobSetup) -> None:
    job = await setup.claimed()
    work = Work(None)
    await _run(setup, job).step("fetch", work)
    await setup.rescue_all()
    job = await setup.claim_one()
    assert await _run(setup, job).step("fetch", work) is None
    await setup.fail(job)
    await setup.retry(job.id)
    assert await _run(setup, await setup.claim_one()).step("fetch", work) is None
    assert work.times == 1


async def test_the_steps_of_one_job_are_not_anothers(setup: JobSetup) -> None:
    await setup.accept(setup.new(), setup.new())
    first, second = await setup.claim()
    work = Work()
    await _run(setup, first).step("fetch", work)
    await _run(setup, second).step("fetch", work)
    assert work.times == 2


async def test_a_job_that_is_to_be_canceled_learns_it_at_its_next_step(setup: JobSetup) -> None:
    job = await setup.claimed()
    run, work = _run(setup, job), Work()
    await run.step("fetch", work)
    await setup.cancel(job.id)
    before = await dump(setup.database, receipts=True)
    with pytest.raises(Canceled, match="on request"):
        await run.step("send", work)
    assert work.times == 1
    assert await dump(setup.database, receipts=True) == before


async def test_a_cancel_request_during_a_step_does_not_undo_what_was_done(setup: JobSetup) -> None:
    job = await setup.claimed()

    async def work() -> str:
        await setup.cancel(job.id)
        return "sent"

    assert await _run(setup, job).step("send", work) == "sent"
    assert (await setup.show(job.id)).steps[0].finished_at is not None


async def test_a_job_whose_heartbeat_told_of_a_cancel_stops_without_asking_the_database(setup: JobSetup) -> None:
    run = _run(setup, await setup.claimed())
    run.cancel_requested = True
    with pytest.raises(Canceled):
        await run.step("send", Work())


async def test_a_worker_that_was_taken_for_dead_does_no_further_step(setup: JobSetup) -> None:
    job = await setup.claimed()
    run, work = _run(setup, job), Work()
    await setup.rescue_all()
    with pytest.raises(LeaseLost):
        await run.step("send", work)
    assert work.times == 0


async def test_a_worker_that_was_taken_for_dead_during_a_step_records_no_result(setup: JobSetup) -> None:
    job = await setup.claimed()

    async def work() -> None:
        await setup.rescue_all()

    with pytest.raises(LeaseLost):
        await _run(setup, job).step("send", work)
    assert [(step.name, step.finished_at is None) for step in (await setup.show(job.id)).steps] == [
        ("send", True),
        ("rescued", False),
    ]


async def test_a_result_that_is_not_json_is_refused_and_the_step_counts_as_not_done(setup: JobSetup) -> None:
    job = await setup.claimed()
    with pytest.raises(BadInput):
        await _run(setup, job).step("fetch", Work(object()))
    assert (await setup.show(job.id)).steps[0].finished_at is None


@pytest.mark.parametrize("name", ["rescued", "retried"])
async def test_a_step_may_bear_the_name_of_an_event_and_is_done_all_the_same(setup: JobSetup, name: str) -> None:
    """What the engine tells among the steps is no result of the handler's."""
    job = await setup.claimed()
    if name == "rescued":
        await setup.rescue_all()
    else:
        await setup.fail(job)
        await setup.retry(job.id)
    assert await _run(setup, await setup.claim_one()).step(name, Work("mine")) == "mine"
