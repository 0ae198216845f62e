"""The worker's loop, which is the same in the switchboard's process and outside it."""

import asyncio
from itertools import pairwise
from pathlib import Path

import orjson
import pytest

from postroom.core.errors import BadInput, NeedsPerson, SwitchboardUnavailable
from postroom.mailboxes.backfill.lease import KeptLease
from postroom.mailboxes.backfill.worker import BackfillWorker, CallAnswer
from support.backfill import ENDPOINT, BackfillSetup, at, backfill_setup, deliver
from support.jumping_loop import now, run

DRIVERS = pytest.mark.parametrize("ask_every_s", [None, 60.0], ids=["in one process", "in its own process"])


def worker_of(
    setup: BackfillSetup, polls: dict[str, float] | None = None, lease: KeptLease | None = None
) -> BackfillWorker:
    begin = setup.mailbox().begin
    return BackfillWorker(setup.board, "gmail", ENDPOINT, begin, clock=now, polls=polls, lease=lease)


async def run_for(worker: BackfillWorker, seconds: float, ask_every_s: float | None = None) -> None:
    """The loop, called at once, and canceled after so long."""
    running = asyncio.create_task(worker.run(ask_every_s))
    worker.call()
    await asyncio.sleep(seconds)
    running.cancel()
    await asyncio.wait({running})


@DRIVERS
def test_the_loop_does_the_whole_job_with_one_poll_and_asks_for_the_next(ask_every_s: float | None) -> None:
    setup = backfill_setup(rate_limit_per_hour=3_600)
    deliver(setup, *(at(2, 10, number // 60, number % 60) for number in range(200)))
    run(run_for(worker_of(setup), 205, ask_every_s))
    assert (setup.board.status, setup.board.processed) == ("completed", 200)
    assert len(setup.board.polls) == 2


def test_a_slow_job_is_reported_often_enough_to_keep_its_lease_and_keeps_its_pace() -> None:
    setup = backfill_setup(rate_limit_per_hour=6)
    deliver(setup, at(2, 1), at(2, 2), at(2, 3))
    assert run(worker_of(setup).work()) == "completed"
    assert setup.board.processed == 3
    reported = [moment for moment, _ in setup.board.reports]
    assert max(after - before for before, after in pairwise(reported)) <= 31
    read = [moment for moment, _ in setup.source.read]
    assert all(after - before >= 600 for before, after in pairwise(read))


def test_work_that_is_stuck_keeps_its_lease_and_loses_nothing() -> None:
    setup = backfill_setup()
    deliver(setup, *(at(2, day) for day in range(1, 6)))

    async def stuck_for_a_while() -> None:
        waiting = asyncio.Event()
        setup.live.waits = waiting.wait
        setup.board.in_background = True
        asyncio.get_running_loop().call_later(1_000, waiting.set)
        await worker_of(setup).work()

    run(stuck_for_a_while())
    assert setup.board.processed == 5
    reported = [moment for moment, _ in setup.board.reports]
    assert max(after - before for before, after in pairwise(reported)) <= 31


def test_without_work_one_inside_the_process_asks_when_it_is_called() -> None:
    setup = backfill_setup(status="completed")

    async def called_twice() -> None:
        worker = worker_of(setup)
        running = asyncio.create_task(worker.run())
        for _ in range(2):
            await asyncio.sleep(1_000)
            worker.call()
        await asyncio.sleep(1_000)
        running.cancel()
        await asyncio.wait({running})

    run(called_twice())
    assert setup.board.polls == [1_000, 2_000]


def test_without_work_one_in_its_own_process_asks_at_intervals() -> None:
    setup = backfill_setup(status="completed")
    run(run_for(worker_of(setup), 1_000, 300.0))
    assert setup.board.polls == [0, 300, 600, 900]


@DRIVERS
def test_a_job_that_comes_later_begins_with_the_call(ask_every_s: float | None) -> None:
    setup = backfill_setup(status="completed")
    deliver(setup, at(2, 1))

    async def comes_later() -> CallAnswer:
        worker = worker_of(setup)
        running = asyncio.create_task(worker.run(ask_every_s))
        worker.call()
        await asyncio.sleep(59.5)
        setup.board.status = "pending"
        answer = worker.call()
        await asyncio.sleep(1)
        running.cancel()
        await asyncio.wait({running})
        return answer

    assert run(comes_later()) == CallAnswer("idle", 0.5)
    assert setup.board.status == "completed"
    assert setup.board.processed == 1


def test_a_call_while_a_job_is_worked_on_changes_nothing() -> None:
    setup = backfill_setup(rate_limit_per_hour=3_600)
    deliver(setup, *(at(2, 10, minute=number) for number in range(40)))

    async def called_often() -> list[CallAnswer]:
        worker, answers = worker_of(setup), list[CallAnswer]()
        for second in range(5, 30, 5):
            asyncio.get_running_loop().call_later(second, lambda: answers.append(worker.call()))
        await run_for(worker, 59)
        return answers

    assert run(called_often()) == [CallAnswer("active")] * 5
    assert (setup.board.status, setup.board.processed) == ("completed", 40)
    assert len(setup.board.polls) == 1


def test_a_call_that_comes_while_the_switchboard_answers_is_not_lost() -> None:
    setup = backfill_setup(status="completed")
    deliver(setup, at(2, 1))

    async def created_just_after() -> None:
        worker = worker_of(setup)

        def create(step: str) -> None:
            if step == "poll" and not setup.board.polls:
                # The answer to this poll was made before.
                asyncio.get_running_loop().call_soon(worker.call)

        setup.step_with(create)
        asyncio.get_running_loop().call_later(1, lambda: setattr(setup.board, "status", "pending"))
        await run_for(worker, 61)

    run(created_just_after())
    assert setup.board.polls == [0, 60]
    assert setup.board.processed == 1


def test_the_switchboard_is_polled_once_a_minute_whatever_happens() -> None:
    setup = backfill_setup(status="completed")
    polls: dict[str, float] = {}

    async def impatient() -> None:
        for _ in range(200):
            worker = worker_of(setup, polls)
            asyncio.get_running_loop().call_later(1, worker.call)
            await run_for(worker, 5)

    run(impatient())
    assert min(after - before for before, after in pairwise(setup.board.polls)) >= 60


@DRIVERS
@pytest.mark.parametrize(
    "error", [SwitchboardUnavailable("away"), NeedsPerson("consent lost"), OSError("disk"), KeyError("a fault")]
)
def test_the_loop_survives_errors_and_still_polls_once_a_minute(error: Exception, ask_every_s: float | None) -> None:
    setup = backfill_setup()
    deliver(setup, *(at(2, day) for day in range(1, 6)))

    def fail(step: str) -> None:
        if step in ("poll", "read") and now() < 1_000:
            setup.board.polls.append(now()) if step == "poll" else None
            raise error

    setup.step_with(fail)
    run(run_for(worker_of(setup), 10_000, ask_every_s))
    assert setup.board.processed == 5
    polls = sorted(set(setup.board.polls))
    assert min((after - before for before, after in pairwise(polls)), default=60) >= 60


def test_the_loop_reports_what_was_done_when_it_is_canceled() -> None:
    setup = backfill_setup(rate_limit_per_hour=3_600)
    deliver(setup, *(at(2, 10, minute=number) for number in range(40)))
    run(run_for(worker_of(setup), 10.5))
    assert setup.board.processed == len(setup.board.envelopes) == 11


def test_an_assignment_with_an_unknown_category_is_refused_with_the_reason() -> None:
    setup = backfill_setup(categories=("weather",))
    assert run(worker_of(setup).work()) == "idle"
    assert setup.board.status == "error"
    assert setup.board.error is not None
    assert "weather" in setup.board.error


@DRIVERS
def test_a_job_that_is_paused_is_dropped_within_half_a_minute_and_continued_when_it_is_resumed(
    ask_every_s: float | None,
) -> None:
    setup = backfill_setup(rate_limit_per_hour=60)
    deliver(setup, *(at(2, day) for day in range(1, 10)))

    async def paused_and_resumed() -> None:
        worker = worker_of(setup)
        running = asyncio.create_task(worker.run(ask_every_s))
        worker.call()
        await asyncio.sleep(100)
        setup.board.status = "paused"
        await asyncio.sleep(31)
        assert worker.call().status == "idle"
        await asyncio.sleep(1_000)
        assert setup.board.processed == 2
        setup.board.status = "pending"
        worker.call()
        await asyncio.sleep(1_000)
        running.cancel()
        await asyncio.wait({running})

    run(paused_and_resumed())
    assert (setup.board.status, setup.board.processed) == ("completed", 9)


@DRIVERS
def test_a_connector_that_was_killed_takes_its_job_back_at_once_and_counts_each_message_once(
    tmp_path: Path, ask_every_s: float | None
) -> None:
    setup = backfill_setup(rate_limit_per_hour=3_600)
    deliver(setup, *(at(2, 10, number // 60, number % 60) for number in range(100)))
    file = tmp_path / "lease.json"

    def dead(_step: str) -> None:
        raise SwitchboardUnavailable("nothing more is heard of it")

    async def killed_and_started_again() -> tuple[float, float]:
        killed = asyncio.create_task(worker_of(setup, lease=KeptLease(file)).work())
        await asyncio.sleep(30)
        setup.step_with(dead)
        killed.cancel()
        await asyncio.wait({killed})
        setup.step_with(lambda _step: None)
        at, running = now(), asyncio.create_task(worker_of(setup, lease=KeptLease(file)).run(ask_every_s))
        await asyncio.sleep(200)
        running.cancel()
        await asyncio.wait({running})
        return at, setup.board.polls[1]

    killed, polled = run(killed_and_started_again())
    assert polled == killed
    assert (setup.board.status, setup.board.processed) == ("completed", 100)
    assert KeptLease(file).token is None


def test_a_damaged_lease_is_forgotten(tmp_path: Path) -> None:
    setup = backfill_setup()
    file = tmp_path / "lease.json"
    file.write_bytes(orjson.dumps({"lease_token": "not a token"}))
    setup.board.poll_errors.append(BadInput("lease_token", "is no id", "use one"))

    async def twice() -> None:
        with pytest.raises(BadInput):
            await worker_of(setup, lease=KeptLease(file)).work()
        assert KeptLease(file).token is None
        await worker_of(setup, lease=KeptLease(file)).work()

    run(twice())
    assert setup.board.status == "completed"
    file.write_bytes(b"{")
    assert KeptLease(file).token is None
