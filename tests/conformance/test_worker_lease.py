"""The worker among others: prefetching, stopping, losing its lease, database failures."""

import asyncio
import time
from datetime import timedelta

import pytest

from postroom.core.errors import DatabaseUnavailable, LeaseLost
from postroom.core.jobs.job import Job
from postroom.jobs import worker as worker_module
from postroom.jobs.rescue import Rescuer
from postroom.jobs.run import Handler, JobRun
from postroom.jobs.worker import Worker, WorkerOptions
from postroom.store.jobs import jobs as store
from support.patience import PATIENCE_S
from support.store.job_setup import TYPES, JobSetup, listen
from support.store.running_worker import Gate, HookedDatabase, quick, until, warm_up, working

SOON = timedelta(milliseconds=2)
AHEAD = timedelta(hours=1)  # with this, a worker that has been measured claims all there is


async def _runs(setup: JobSetup, count: int) -> None:
    async def reached() -> bool:
        return (await setup.counts()).get("running", 0) == count

    await until(reached)


async def _take_for_dead(setup: JobSetup, job: Job) -> None:
    """As the rescuer does, but at once: a worker that renews its lease every moment would never be found dead."""
    await setup.database.run(store.close_lease(job.token, setup.clock()))


async def _has_claimed_all_it_wants(worker: Worker, meddler: HookedDatabase) -> None:
    """The worker has looked around twice since, and asked the database for nothing more."""
    looks: list[int] = []

    def look() -> float:
        looks.append(len(meddler.seen))
        return time.monotonic()

    worker._monotonic = look
    await until(lambda: len(looks) > 6 and len(set(looks[-6:])) == 1)


def _handlers(gate: Gate) -> dict[str, Handler]:
    return {"plain": gate, "other": quick}


@pytest.fixture
def nothing_waits_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, the worker keeps what it has claimed ahead."""
    monkeypatch.setattr(worker_module, "LONGEST_WAIT_S", 3600)


@pytest.mark.usefixtures("nothing_waits_too_long")
async def test_an_urgent_job_is_run_next_although_others_were_claimed_before_it(setup: JobSetup) -> None:
    gate = Gate()
    async with working(setup, _handlers(gate), concurrency=2, prefetch=AHEAD) as worker:
        await warm_up(setup, worker)
        await setup.accept(*(setup.new(payload={"n": n}) for n in range(6)))
        await gate.next()
        await gate.next()
        await _runs(setup, 6)
        assert len(worker._buffer) == 4
        urgent = await setup.enqueue(payload={"n": "urgent"}, priority=10)
        await until(lambda: worker._buffer.highest_priority == 10)
        gate.let_go()
        assert (await gate.next()).job.id == urgent.id
        gate.let_go(10)
        await until(lambda: not worker._buffer and not gate.inside)
    assert gate.order == [0, 1, "urgent", 2, 3, 4, 5]


@pytest.mark.usefixtures("nothing_waits_too_long")
async def test_an_urgent_job_that_comes_while_others_are_being_claimed_is_run_next_too(setup: JobSetup) -> None:
    """It is heard of before the buffer holds the less urgent ones that the claim under way brings."""
    gate, meddler = Gate(), HookedDatabase(setup.database)
    heard = await listen(setup.database, store.CHANNEL)

    async def enqueue_urgent() -> None:
        await setup.enqueue(payload={"n": "urgent"}, priority=10)
        while await asyncio.wait_for(heard.get(), PATIENCE_S) != "10":
            pass

    async with working(setup, _handlers(gate), database=meddler, concurrency=1, prefetch=AHEAD) as worker:
        await warm_up(setup, worker)
        await setup.enqueue(payload={"n": 0})
        await gate.next()
        await until(lambda: not worker._buffer)
        worker._buffer._most = 2
        meddler.after["claim"] = enqueue_urgent
        await setup.accept(*(setup.new(payload={"n": n}) for n in range(1, 4)))
        await until(lambda: "claim" not in meddler.after and len(worker._buffer) >= 2)
        await _has_claimed_all_it_wants(worker, meddler)
        gate.let_go(5)
        await until(lambda: len(gate.order) == 5 and not gate.inside)
    assert gate.order == [0, "urgent", 1, 2, 3]


async def test_what_was_claimed_ahead_and_waits_too_long_is_given_back(setup: JobSetup) -> None:
    """Every place is taken by slow jobs: others may have what waits behind them."""
    gate = Gate()
    async with working(setup, _handlers(gate), concurrency=1, prefetch=timedelta(seconds=5)) as worker:
        await warm_up(setup, worker)
        await setup.accept(*(setup.new(payload={"n": n}) for n in range(3)))
        await gate.next()
        await until(lambda: len(worker._buffer) == 2)
        worker._monotonic = lambda: time.monotonic() + 100_000

        others: list[Job] = []

        async def are_with_others() -> bool:
            # A claim of the worker that began before may take them once more, and gives them back again.
            others.extend(await setup.claim())
            return len(others) == 2

        await until(are_with_others)
        assert [job.attempts for job in others] == [1, 1]
        gate.let_go(3)
    assert gate.order == [0]


@pytest.mark.usefixtures("nothing_waits_too_long")
async def test_a_stop_gives_back_what_was_not_begun_and_waits_for_what_was(setup: JobSetup) -> None:
    gate = Gate()
    async with working(setup, _handlers(gate), concurrency=1, prefetch=AHEAD) as worker:
        await warm_up(setup, worker)
        accepted = await setup.accept(*(setup.new(payload={"n": n}) for n in range(3)))
        await gate.next()
        await until(lambda: len(worker._buffer) == 2)
        worker.stop()

        async def is_given_back() -> bool:
            return await setup.state(accepted[1].id) == "queued"

        await until(is_given_back)
        assert gate.inside == 1
        gate.let_go()
    shown = [await setup.show(each.id) for each in accepted]
    assert [(each.state, each.attempts) for each in shown] == [("completed", 1), ("queued", 0), ("queued", 0)]
    assert gate.order == [0]


async def test_a_job_that_outlasts_the_drain_is_ended_and_given_to_another(setup: JobSetup) -> None:
    gate = Gate()
    accepted = await setup.enqueue()
    async with working(setup, gate, drain=timedelta(0)):
        await gate.next()
    shown = await setup.show(accepted.id)
    assert (shown.state, shown.attempts) == ("queued", 1)
    assert gate.canceled == 1
    assert [step.name for step in shown.steps] == ["rescued"]


async def test_a_stopped_worker_leaves_no_lease_behind(setup: JobSetup) -> None:
    await setup.enqueue()
    gate = Gate()
    gate.let_go()
    async with working(setup, gate) as worker:
        await until(lambda: worker.counts.completed == 1)
    setup.clock.forward(10**6)
    assert await setup.database.run(store.rescue(setup.clock())) == (0, 0, 0)


@pytest.mark.usefixtures("nothing_waits_too_long")
async def test_a_worker_that_lost_its_lease_drops_everything_and_begins_again(setup: JobSetup) -> None:
    gate = Gate()
    async with working(setup, _handlers(gate), concurrency=1, heartbeat=SOON, prefetch=AHEAD) as worker:
        await warm_up(setup, worker)
        accepted = await setup.accept(*(setup.new(payload={"n": n}) for n in range(2)))
        first = await gate.next()
        await until(lambda: len(worker._buffer) == 1)
        await _take_for_dead(setup, first.job)
        again = await gate.next()
        assert gate.canceled == 1
        assert (again.job.id, again.job.attempts) == (first.job.id, 2)
        assert again.job.token != first.job.token
        gate.let_go(2)
        await until(lambda: len(gate.order) == 3 and not gate.inside)
    shown = [await setup.show(each.id) for each in accepted]
    assert [(each.state, each.attempts) for each in shown] == [("completed", 2), ("completed", 2)]


@pytest.mark.usefixtures("nothing_waits_too_long")
async def test_a_worker_whose_handlers_end_slowly_still_begins_again(setup: JobSetup) -> None:
    """When the lease is lost, handlers are canceled; one that takes its time must not stop the worker for good."""
    entered: asyncio.Queue[JobRun] = asyncio.Queue()
    cleaned_up = asyncio.Event()

    async def handler(run: JobRun) -> None:
        entered.put_nowait(run)
        if run.job.attempts == 1:
            try:
                await asyncio.Event().wait()
            finally:
                await cleaned_up.wait()

    await setup.enqueue()
    async with working(setup, handler, concurrency=1, heartbeat=SOON) as worker:
        first = await asyncio.wait_for(entered.get(), PATIENCE_S)
        try:
            await _take_for_dead(setup, first.job)
            await until(lambda: len(worker._buffer) == 1)
        finally:
            cleaned_up.set()
        again = await asyncio.wait_for(entered.get(), PATIENCE_S)
        assert again.job.attempts == 2
        await until(lambda: worker.counts.completed == 1)


async def test_two_workers_share_the_work_and_do_nothing_twice(setup: JobSetup) -> None:
    seen: list[int] = []

    async def handler(run: JobRun) -> None:
        seen.append(run.job.payload["n"])

    await setup.accept(*(setup.new(payload={"n": n}) for n in range(300)))
    async with working(setup, handler) as one, working(setup, handler) as other:
        await until(lambda: one.counts.completed + other.counts.completed == 300)
    assert sorted(seen) == list(range(300))


@pytest.mark.parametrize("verb", ["open_lease", "claim", "finish", "retry_later", "heartbeat"])
async def test_a_worker_survives_a_database_in_trouble(
    setup: JobSetup, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "PAUSE_AFTER_STORE_ERROR_S", 0)
    meddler = HookedDatabase(setup.database)
    failed = asyncio.Event()

    async def fail() -> None:
        failed.set()
        raise DatabaseUnavailable("away for a moment")

    async def handler(run: JobRun) -> None:
        if verb == "heartbeat":
            await failed.wait()
        if verb == "retry_later" and run.job.attempts == 1:
            raise RuntimeError("once")

    meddler.before[verb] = fail
    accepted = await setup.enqueue()
    async with working(setup, handler, database=meddler, heartbeat=SOON) as worker:
        await asyncio.wait_for(failed.wait(), PATIENCE_S)
        if verb == "retry_later":

            async def is_woken() -> bool:
                setup.clock.forward(1)
                return await setup.wake_due() == 1

            await until(is_woken)
        await until(lambda: worker.counts.completed == 1)
    assert await setup.state(accepted.id) == "completed"


async def test_an_end_that_could_not_be_written_before_the_lease_ran_out_is_not_ours_to_write(
    setup: JobSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "PAUSE_AFTER_STORE_ERROR_S", 0)
    meddler = HookedDatabase(setup.database)
    tried = asyncio.Event()

    async def fail_too_late() -> None:
        setup.clock.forward(61)
        tried.set()
        raise DatabaseUnavailable("away for too long")

    async def handler(run: JobRun) -> None:
        return None

    meddler.before["finish"] = fail_too_late
    accepted = await setup.enqueue()
    async with working(setup, handler, database=meddler) as worker:
        await asyncio.wait_for(tried.wait(), PATIENCE_S)
        await until(lambda: worker._finishing is None)
        assert worker.counts.completed == 0
        assert meddler.seen.count("finish") == 1
    await Rescuer(setup.database, setup.clock).tick()
    assert await setup.state(accepted.id) == "queued"


async def test_a_finish_by_a_worker_that_was_taken_for_dead_counts_as_stale(setup: JobSetup) -> None:
    gate = Gate()
    await setup.enqueue()
    async with working(setup, gate) as worker:
        run = await gate.next()
        await _take_for_dead(setup, run.job)
        taken = await setup.claim_one()
        gate.let_go()
        await until(lambda: worker.counts.stale == 1)
        assert worker.counts.completed == 0
    assert await setup.finish(taken) == {taken.seq}


async def test_a_worker_that_is_canceled_leaves_nothing_running_and_gives_everything_back(setup: JobSetup) -> None:
    begun = asyncio.Event()

    async def handler(run: JobRun) -> None:
        begun.set()
        await asyncio.Event().wait()

    accepted = await setup.accept(*(setup.new() for _ in range(5)))
    worker = Worker(setup.database, TYPES, {"plain": handler}, WorkerOptions(concurrency=2), setup.clock)
    working = asyncio.create_task(worker.run())
    await asyncio.wait_for(begun.wait(), PATIENCE_S)
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    assert not worker._runners
    assert not worker._buffer
    assert [await setup.state(each.id) for each in accepted] == ["queued"] * 5


async def test_a_job_that_came_too_near_to_the_end_of_its_lease_is_given_back(setup: JobSetup) -> None:
    """The gate refuses requests a little before the lease is over; the lease may well be renewed after that."""
    attempts: list[int] = []

    async def handler(run: JobRun) -> None:
        attempts.append(run.job.attempts)
        if len(attempts) == 1:
            raise LeaseLost("too near to its end")

    accepted = await setup.enqueue()
    async with working(setup, handler) as worker:
        await until(lambda: worker.counts.completed == 1)
    assert attempts == [1, 1]
    assert await setup.state(accepted.id) == "completed"
