"""The worker: what happens to jobs depending on what their handlers do."""

import asyncio
from datetime import timedelta

import pytest

from postroom.core.errors import Fatal, Parked, Retryable
from postroom.core.jobs.job import Job
from postroom.core.jobs.retry import RetryPolicy
from postroom.core.jobs.types import Catalogue, JobType
from postroom.jobs.run import JobRun
from postroom.store.engine.database import Script, transaction
from postroom.store.jobs import jobs as store
from support.patience import PATIENCE_S
from support.store.job_setup import TYPES, JobSetup
from support.store.running_worker import Gate, until, until_back, working


def _raising(*errors: BaseException | None) -> "Raising":
    return Raising(list(errors))


class Raising:
    """A handler that raises one after another, and succeeds for None."""

    def __init__(self, errors: list[BaseException | None]) -> None:
        self.errors = errors
        self.attempts: list[int] = []

    async def __call__(self, run: JobRun) -> None:
        self.attempts.append(run.job.attempts)
        error = self.errors.pop(0)
        if error is not None:
            raise error


async def test_jobs_that_wait_and_jobs_that_come_are_run_once_each(setup: JobSetup) -> None:
    seen: list[int] = []

    async def handler(run: JobRun) -> None:
        seen.append(run.job.payload["n"])

    await setup.accept(*(setup.new(payload={"n": n}) for n in range(50)))
    async with working(setup, handler) as worker:
        await setup.accept(*(setup.new(payload={"n": n}) for n in range(50, 100)))
        await until(lambda: worker.counts.completed == 100)
    assert sorted(seen) == list(range(100))
    assert await setup.counts() == {"completed": 100}


async def test_jobs_are_run_in_their_order(setup: JobSetup) -> None:
    gate = Gate()
    asked = [0, 5, -5, 5, 0]
    await setup.accept(*(setup.new(payload={"n": n}, priority=priority) for n, priority in enumerate(asked)))
    gate.let_go(len(asked))
    async with working(setup, gate, concurrency=1) as worker:
        await until(lambda: worker.counts.completed == len(asked))
    assert gate.order == [1, 3, 0, 4, 2]


async def test_no_more_run_at_a_time_than_allowed(setup: JobSetup) -> None:
    gate = Gate()
    await setup.accept(*(setup.new() for _ in range(12)))
    async with working(setup, gate, concurrency=3):
        for _ in range(3):
            await gate.next()
        for _ in range(9):
            assert gate.inside == 3
            gate.let_go()
            await gate.next()
        gate.let_go(3)
    assert gate.most_inside == 3
    assert await setup.counts() == {"completed": 12}


async def test_a_failed_attempt_is_tried_again_after_a_pause_that_grows(setup: JobSetup) -> None:
    handler = _raising(RuntimeError("first"), RuntimeError("second"), None)
    accepted = await setup.enqueue()
    async with working(setup, handler) as worker:
        for attempt, text in ((1, "first"), (2, "second")):
            shown = await until_back(setup, accepted.id, attempt)
            assert shown.last_error == f"RuntimeError: {text}"
            assert shown.not_before is not None
            pause = (shown.not_before - setup.clock()).total_seconds()
            assert 0.75 * 2**attempt <= pause <= 1.25 * 2**attempt
            setup.clock.forward(pause)
            assert await setup.wake_due() == 1
        await until(lambda: worker.counts.completed == 1)
    assert handler.attempts == [1, 2, 3]
    assert await setup.state(accepted.id) == "completed"


async def test_the_servers_own_retry_after_wins(setup: JobSetup) -> None:
    accepted = await setup.enqueue()
    async with working(setup, _raising(Retryable("slow down", after=timedelta(seconds=77)))) as worker:
        await until(lambda: worker.counts.retried == 1)
    shown = await setup.show(accepted.id)
    assert shown.not_before == setup.clock() + timedelta(seconds=77)
    assert shown.last_error == "slow down"


async def test_the_last_attempt_that_fails_ends_the_job(setup: JobSetup) -> None:
    accepted = await setup.enqueue(max_attempts=1)
    async with working(setup, _raising(RuntimeError("broken"))) as worker:
        await until(lambda: worker.counts.failed == 1)
    shown = await setup.show(accepted.id)
    assert (shown.state, shown.attempts, shown.last_error) == ("failed", 1, "RuntimeError: broken")


async def test_a_fatal_error_ends_the_job_at_once(setup: JobSetup) -> None:
    accepted = await setup.enqueue()
    async with working(setup, _raising(Fatal("no such message"))) as worker:
        await until(lambda: worker.counts.failed == 1)
    shown = await setup.show(accepted.id)
    assert (shown.state, shown.attempts, shown.last_error) == ("failed", 1, "no such message")


async def test_a_parked_job_waits_without_having_used_an_attempt(setup: JobSetup) -> None:
    accepted = await setup.enqueue()
    async with working(setup, _raising(Parked("account:1", "consent lost"), None)) as worker:
        await until(lambda: worker.counts.parked == 1)
        shown = await until_back(setup, accepted.id, 0)
        assert shown.parked_by == "account:1"
        await setup.unpark("account:1")
        await until(lambda: worker.counts.completed == 1)


@pytest.mark.parametrize("text", ["", "nul \0 and \ud800 surrogate", "x" * 100_000], ids=["empty", "odd", "long"])
async def test_any_text_of_an_error_can_be_kept(setup: JobSetup, text: str) -> None:
    accepted = await setup.enqueue()
    async with working(setup, _raising(Fatal(text))) as worker:
        await until(lambda: worker.counts.failed == 1)
    assert (await setup.show(accepted.id)).last_error


async def test_a_type_without_a_handler_is_tried_again_later_and_says_why(setup: JobSetup) -> None:
    accepted = await setup.enqueue("other")
    async with working(setup, {"plain": _raising(None)}) as worker:
        await until(lambda: worker.counts.retried == 1)
    shown = await setup.show(accepted.id)
    assert shown.state == "queued"
    assert "no handler for other" in (shown.last_error or "")


async def test_a_type_that_this_version_does_not_know_is_tried_again_later_and_says_why(setup: JobSetup) -> None:
    """A newer process has enqueued it."""
    accepted = await setup.enqueue("other")
    async with working(setup, _raising(None), types=Catalogue(TYPES["plain"])) as worker:
        await until(lambda: worker.counts.retried == 1)
    shown = await setup.show(accepted.id)
    assert shown.state == "queued"
    assert "no handler for other" in (shown.last_error or "")


async def test_a_handler_that_takes_too_long_is_ended_and_tried_again(setup: JobSetup) -> None:
    types = Catalogue(JobType("plain", retry=RetryPolicy(3), timeout=timedelta(milliseconds=5)))
    gate = Gate()
    accepted = await setup.enqueue()
    async with working(setup, gate, types=types) as worker:
        await until(lambda: worker.counts.retried == 1)
    assert gate.canceled == 1
    assert (await setup.show(accepted.id)).last_error == "took longer than 0.005 s"


async def test_a_handler_that_is_canceled_from_within_is_tried_again(setup: JobSetup) -> None:
    """Something the handler waits for was canceled by someone else; the job is not lost for that."""
    accepted = await setup.enqueue()
    async with working(setup, _raising(asyncio.CancelledError("from within"), None)) as worker:
        await until(lambda: worker.counts.retried == 1)
    assert await setup.state(accepted.id) == "queued"


async def test_a_job_is_canceled_at_its_next_step(setup: JobSetup) -> None:
    done: list[str] = []
    between, go_on = asyncio.Event(), asyncio.Event()

    async def handler(run: JobRun) -> None:
        async def work() -> None:
            done.append("step")

        await run.step("first", work)
        between.set()
        await go_on.wait()
        await run.step("second", work)

    accepted = await setup.enqueue()
    async with working(setup, handler) as worker:
        await asyncio.wait_for(between.wait(), PATIENCE_S)
        assert await setup.cancel(accepted.id) == "requested"
        go_on.set()
        await until(lambda: worker.counts.canceled == 1)
    assert done == ["step"]
    assert await setup.state(accepted.id) == "canceled"


async def test_a_heartbeat_tells_a_running_job_to_cancel(setup: JobSetup) -> None:
    begun = asyncio.Event()

    async def handler(run: JobRun) -> None:
        begun.set()
        while True:
            run.check_canceled()
            await asyncio.sleep(0)

    accepted = await setup.enqueue()
    async with working(setup, handler, heartbeat=timedelta(milliseconds=2)) as worker:
        await asyncio.wait_for(begun.wait(), PATIENCE_S)
        await setup.cancel(accepted.id)
        await until(lambda: worker.counts.canceled == 1)
    assert await setup.state(accepted.id) == "canceled"


async def test_a_retry_resumes_after_the_last_step_that_finished(setup: JobSetup) -> None:
    done: list[str] = []
    results: list[object] = []

    async def handler(run: JobRun) -> None:
        async def fetch() -> dict[str, int]:
            done.append("fetch")
            return {"found": 3}

        async def send() -> None:
            done.append("send")
            if run.job.attempts == 1:
                raise RuntimeError("the line broke")

        results.append(await run.step("fetch", fetch))
        assert await run.was_interrupted("send") == (run.job.attempts > 1)
        await run.step("send", send)

    accepted = await setup.enqueue()
    async with working(setup, handler) as worker:
        await until_back(setup, accepted.id, 1)
        setup.clock.forward(10)
        await setup.wake_due()
        await until(lambda: worker.counts.completed == 1)
    assert done == ["fetch", "send", "send"]
    assert results == [{"found": 3}, {"found": 3}]
    assert [step.attempt for step in (await setup.show(accepted.id)).steps] == [1, 1, 2]


@transaction
def _complete_with_effect(job: Job, setup: JobSetup) -> Script[str]:
    yield from store.completing_one(job, setup.clock())
    yield from store.enqueue_many.script([setup.new("other", key="effect")], setup.clock())
    return "both"


async def test_a_handler_may_end_its_job_together_with_its_effect(setup: JobSetup) -> None:
    answers: list[str] = []

    async def handler(run: JobRun) -> None:
        if run.job.type == "plain":
            answers.append(await run.complete(_complete_with_effect(run.job, setup)))

    await setup.enqueue()
    async with working(setup, handler) as worker:
        await until(lambda: worker.counts.completed == 2)
    assert answers == ["both"]
    assert worker.counts.stale == 0
    assert await setup.counts() == {"completed": 2}


async def test_keys_while_live_are_released_by_the_worker(setup: JobSetup) -> None:
    await setup.enqueue("sync", key="k")
    async with working(setup, _raising(None, None)) as worker:
        await until(lambda: worker.counts.completed == 1)
        assert not (await setup.enqueue("sync", key="k")).duplicate
        await until(lambda: worker.counts.completed == 2)
