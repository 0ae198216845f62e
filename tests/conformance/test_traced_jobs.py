"""A trace goes along with the work: into the job, out of its handler, into the jobs that follow from it."""

import pytest

from postroom.core.errors import Fatal, Retryable
from postroom.jobs.run import JobRun
from postroom.telemetry.tracing import current_traceparent, span
from support.spans import above, place, recorded_spans
from support.store.job_setup import JobSetup
from support.store.running_worker import until, working

GIVEN = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Chain:
    """A handler that enqueues one job more, of the type `other`, and remembers with which trace each came."""

    def __init__(self, setup: JobSetup) -> None:
        self._desk = setup
        self.came_with: dict[str, str | None] = {}

    async def __call__(self, run: JobRun) -> None:
        self.came_with[run.job.type] = run.job.traceparent
        if run.job.type == "plain":
            await self._desk.enqueue("other")


async def test_each_run_of_a_job_is_a_span_and_what_it_enqueues_is_a_part_of_it(setup: JobSetup) -> None:
    handler = Chain(setup)
    with recorded_spans() as spans:
        job = await setup.enqueue(traceparent=GIVEN)
        async with working(setup, handler) as worker:
            await until(lambda: worker.counts.completed == 2)
    first, second = spans["job plain"], spans["job other"]
    assert (above(first), above(second)) == (GIVEN, place(first))
    assert handler.came_with == {"plain": GIVEN, "other": place(first)}
    assert dict(first.attributes or {}) == {"job": str(job.id), "attempt": 1}


async def test_without_a_tracer_the_trace_that_was_given_goes_along_as_it_is(setup: JobSetup) -> None:
    handler = Chain(setup)
    await setup.enqueue(traceparent=GIVEN)
    async with working(setup, handler) as worker:
        await until(lambda: worker.counts.completed == 2)
    assert handler.came_with == {"plain": GIVEN, "other": GIVEN}


async def test_a_job_without_a_trace_has_none_after_one_that_had_one(setup: JobSetup) -> None:
    seen: list[str | None] = []

    async def handler(_run: JobRun) -> None:
        seen.append(current_traceparent())

    await setup.accept(setup.new(traceparent=GIVEN), setup.new(), setup.new(traceparent="00-nonsense"))
    async with working(setup, handler, concurrency=1) as worker:
        await until(lambda: worker.counts.completed == 3)
    assert seen == [GIVEN, None, None]


async def test_a_trace_that_is_named_wins_over_the_current_one(setup: JobSetup) -> None:
    with span("here", GIVEN):
        assert setup.new(traceparent=GIVEN[:-1] + "0").traceparent == GIVEN[:-1] + "0"
        assert setup.new().traceparent == GIVEN
    assert setup.new().traceparent is None


@pytest.mark.parametrize("error", [Fatal("canary"), Retryable("canary"), ValueError("canary")], ids=repr)
async def test_a_run_that_fails_ends_its_span_with_the_kind_of_the_error(setup: JobSetup, error: Exception) -> None:
    async def handler(_run: JobRun) -> None:
        raise error

    with recorded_spans() as spans:
        await setup.enqueue(traceparent=GIVEN)
        async with working(setup, handler) as worker:
            await until(lambda: worker.counts.failed + worker.counts.retried == 1)
    failed = spans["job plain"]
    assert (failed.attributes or {})["error.type"] == type(error).__name__
    assert "canary" not in failed.to_json()
