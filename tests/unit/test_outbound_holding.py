"""The lease of a delivery is renewed while it is being sent; a sender that has lost it stops."""

import asyncio
from datetime import timedelta

import pytest

from postroom.core.errors import DatabaseUnavailable, LeaseLost
from postroom.outbound.queue.holding import while_renewed
from postroom.outbound.queue.pace import Pace

PACE = Pace()


class Beats:
    """Time between beats that passes when the test says so."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self._gate = asyncio.Semaphore(0)
        self.renewed = 0
        self.errors: list[Exception] = []
        self._beaten = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await self._gate.acquire()

    async def renew(self) -> None:
        self.renewed += 1
        self._beaten.set()
        if self.errors:
            raise self.errors.pop(0)

    async def beat(self) -> None:
        self._beaten.clear()
        self._gate.release()
        await self._beaten.wait()


async def test_a_lease_is_a_minute_and_is_renewed_three_times_in_it() -> None:
    assert timedelta(seconds=60) == PACE.lease == 3 * PACE.renew


async def test_long_work_keeps_its_lease_and_ends_by_itself() -> None:
    beats, may_end = Beats(), asyncio.Event()

    async def work() -> None:
        await may_end.wait()

    holding = asyncio.create_task(while_renewed(work(), beats.renew, PACE, beats.sleep))
    for _ in range(10):
        await beats.beat()
    may_end.set()
    await holding
    assert beats.renewed == 10
    assert set(beats.slept) == {20.0}


async def test_whoever_has_lost_the_lease_is_stopped_at_once() -> None:
    beats, stopped = Beats(), asyncio.Event()
    beats.errors = [LeaseLost("taken over")]

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    holding = asyncio.create_task(while_renewed(work(), beats.renew, PACE, beats.sleep))
    await beats.beat()
    with pytest.raises(LeaseLost):
        await holding
    assert stopped.is_set()


async def test_a_database_that_does_not_answer_is_borne_for_as_long_as_the_lease_lasts() -> None:
    beats = Beats()
    gone = DatabaseUnavailable("gone")
    beats.errors = [gone, gone]

    holding = asyncio.create_task(while_renewed(asyncio.Event().wait(), beats.renew, PACE, beats.sleep))  # type: ignore[arg-type]
    for _ in range(3):
        await beats.beat()
    assert not holding.done()
    beats.errors = [gone, gone, gone]
    for _ in range(3):
        await beats.beat()
    with pytest.raises(DatabaseUnavailable):
        await holding


async def test_an_error_of_the_work_is_the_error() -> None:
    async def work() -> None:
        raise ValueError("the work")

    with pytest.raises(ValueError, match="the work"):
        await while_renewed(work(), Beats().renew, PACE, Beats().sleep)
