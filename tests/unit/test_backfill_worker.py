"""The two drivers of a backfill: the connector's own loop, and slices on request."""

import asyncio
from itertools import pairwise
from pathlib import Path

import orjson
import pytest

from postroom.core.errors import BadInput, NeedsPerson, SwitchboardUnavailable
from postroom.mailboxes.backfill.lease import KeptLease
from postroom.mailboxes.backfill.worker import BackfillWorker, SliceResult
from support.backfill import ENDPOINT, BackfillSetup, at, backfill_setup, deliver
from support.jumping_loop import now, run


def worker_of(
    setup: BackfillSetup, polls: dict[str, float] | None = None, lease: KeptLease | None = None
) -> BackfillWorker:
    begin = setup.mailbox().begin
    return BackfillWorker(
        setup.board, "gmail", ENDPOINT, begin, poll_interval_s=60, clock=now, polls=polls, lease=lease
    )


async def slices(worker: BackfillWorker, most: int = 10_000) -> list[SliceResult]:
    """Slice after slice, each when the one before said, until one says that there is nothing to do."""
    found: list[SliceResult] = []
    for _ in range(most):
        found.append(await worker.work_for(45))
        if (again := found[-1].again_in_s) is None:
            break
        await asyncio.sleep(again)
    return found


def test_slices_do_the_whole_job_with_one_poll() -> None:
    setup = backfill_setup(rate_limit_per_hour=3_600)
    deliver(setup, *(at(2, 10, number // 60, number % 60) for number in range(200)))
    found = run(slices(worker_of(setup)))
    assert sum(each.processed for each in found) == setup.board.processed == 200
    assert setup.board.status == "completed"
    assert [each.status for each in found][-2:] == ["completed", "idle"]
    assert len(setup.board.polls) == 2


def test_no_slice_takes_longer_than_its_time() -> None:
    setup = backfill_setup(rate_limit_per_hour=7_200)
    deliver(setup, *(at(2, 10, number // 60, number % 60) for number in range(300)))
    worker = worker_of(setup)

    async def timed() -> list[float]:
        lengths: list[float] = []
        while setup.board.status != "completed":
            began = now()
            result = await worker.work_for(20)
            lengths.append(now() - began)
            await asyncio.sleep(result.again_in_s or 0)
        return lengths

    lengths = run(timed())
    assert max(lengths) <= 20
    assert len(lengths) >= 300 / 2 / 20


def test_a_slice_does_not_wait_for_the_next_message_and_keeps_the_lease() -> None:
    setup = backfill_setup(rate_limit_per_hour=6)
    deliver(setup, at(2, 1), at(2, 2), at(2, 3))
    found = run(slices(worker_of(setup)))
    assert setup.board.processed == 3
    assert max(each.again_in_s or 0 for each in found if each.status == "active") <= 30
    reported = [moment for moment, _ in setup.board.reports]
    assert max(after - before for before, after in pairwise(reported)) <= 31
    read = [moment for moment, _ in setup.source.read]
    assert all(after - before >= 600 for before, after in pairwise(read))


def test_a_slice_that_is_stuck_ends_in_time_and_loses_nothing() -> None:
    setup = backfill_setup()
    deliver(setup, *(at(2, day) for day in range(1, 6)))

    async def stuck_for_a_while() -> list[SliceResult]:
        waiting = asyncio.Event()
        setup.live.waits = waiting.wait
        setup.board.in_background = True
        worker = worker_of(setup)
        first = await worker.work_for(45)
        waiting.set()
        return [first, *await slices(worker)]

    found = run(stuck_for_a_while())
    assert found[0] == SliceResult("active", 0, 0, 0.0)
    assert setup.board.processed == 5


def test_the_switchboard_is_polled_once_a_minute_whatever_happens() -> None:
    setup = backfill_setup(status="completed")
    polls: dict[str, float] = {}

    async def impatient() -> None:
        for _ in range(200):
            result = await worker_of(setup, polls).work_for(45)
            assert result.status == "idle"
            await asyncio.sleep(5)

    run(impatient())
    assert min(after - before for before, after in pairwise(setup.board.polls)) >= 60


@pytest.mark.parametrize("error", [SwitchboardUnavailable("away"), NeedsPerson("consent lost"), OSError("disk")])
def test_the_loop_survives_errors_and_still_polls_once_a_minute(error: Exception) -> None:
    setup = backfill_setup()
    deliver(setup, *(at(2, day) for day in range(1, 6)))

    def fail(step: str) -> None:
        if step in ("poll", "read") and now() < 1_000:
            setup.board.polls.append(now()) if step == "poll" else None
            raise error

    setup.step_with(fail)

    async def looping() -> None:
        stop = asyncio.Event()
        asyncio.get_running_loop().call_later(10_000, stop.set)
        await worker_of(setup).run(stop)

    run(looping())
    assert setup.board.processed == 5
    polls = sorted(set(setup.board.polls))
    assert min((after - before for before, after in pairwise(polls)), default=60) >= 60


def test_the_loop_reports_what_was_done_when_it_is_canceled() -> None:
    setup = backfill_setup(rate_limit_per_hour=3_600)
    deliver(setup, *(at(2, 10, minute=number) for number in range(40)))

    async def canceled() -> None:
        running = asyncio.create_task(worker_of(setup).run(asyncio.Event()))
        await asyncio.sleep(10.5)
        running.cancel()
        await asyncio.wait({running})

    run(canceled())
    assert setup.board.processed == len(setup.board.envelopes) == 11


def test_while_the_loop_works_a_slice_has_nothing_to_do() -> None:
    setup = backfill_setup(rate_limit_per_hour=3_600)
    deliver(setup, *(at(2, 10, minute=number) for number in range(40)))

    async def both() -> SliceResult:
        worker = worker_of(setup)
        running = asyncio.create_task(worker.run(asyncio.Event()))
        await asyncio.sleep(5)
        result = await worker.work_for(45)
        running.cancel()
        await asyncio.wait({running})
        return result

    assert run(both()) == SliceResult("active", 0, 0, 300.0)


def test_two_slices_at_once_work_one_after_the_other() -> None:
    setup = backfill_setup(rate_limit_per_hour=3_600)
    deliver(setup, *(at(2, 10, minute=number) for number in range(40)))

    async def both() -> tuple[SliceResult, SliceResult]:
        worker = worker_of(setup)
        return await asyncio.gather(worker.work_for(45), worker.work_for(45))

    first, second = run(both())
    assert first.processed > 0
    assert second == SliceResult("active", 0, 0, 30.0)


def test_an_assignment_with_an_unknown_category_is_refused_with_the_reason() -> None:
    setup = backfill_setup(categories=("weather",))
    assert run(worker_of(setup).work_for(45)).status == "idle"
    assert setup.board.status == "error"
    assert setup.board.error is not None
    assert "weather" in setup.board.error


def test_a_job_that_is_paused_is_dropped_and_asked_for_again_a_minute_later() -> None:
    setup = backfill_setup(rate_limit_per_hour=60)
    deliver(setup, *(at(2, day) for day in range(1, 10)))
    worker = worker_of(setup)

    async def paused_and_resumed() -> None:
        await worker.work_for(45)
        setup.board.status = "paused"
        await asyncio.sleep(31)
        result = await worker.work_for(45)
        assert result.status == "paused"
        assert result.again_in_s == pytest.approx(29)
        setup.board.status = "pending"
        await asyncio.sleep(29)
        await slices(worker)

    run(paused_and_resumed())
    assert (setup.board.status, setup.board.processed) == ("completed", 9)


def test_a_connector_that_was_killed_takes_its_job_back_at_once_and_counts_each_message_once(tmp_path: Path) -> None:
    setup = backfill_setup(rate_limit_per_hour=3_600)
    deliver(setup, *(at(2, 10, number // 60, number % 60) for number in range(100)))
    file = tmp_path / "lease.json"

    async def killed_and_started_again() -> tuple[float, float]:
        await worker_of(setup, lease=KeptLease(file)).work_for(30)  # killed: nothing more is heard of it
        killed = now()
        await slices(worker_of(setup, lease=KeptLease(file)))
        return killed, setup.board.polls[1]

    killed, polled = run(killed_and_started_again())
    assert polled == killed
    assert (setup.board.status, setup.board.processed) == ("completed", 100)


def test_a_damaged_lease_is_forgotten(tmp_path: Path) -> None:
    setup = backfill_setup()
    file = tmp_path / "lease.json"
    file.write_bytes(orjson.dumps({"lease_token": "not a token"}))
    setup.board.poll_errors.append(BadInput("lease_token", "is no id", "use one"))

    async def twice() -> None:
        with pytest.raises(BadInput):
            await worker_of(setup, lease=KeptLease(file)).work_for(30)
        assert KeptLease(file).token is None
        await slices(worker_of(setup, lease=KeptLease(file)))

    run(twice())
    assert setup.board.status == "completed"
    file.write_bytes(b"{")
    assert KeptLease(file).token is None
