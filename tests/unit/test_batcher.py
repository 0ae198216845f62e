"""The batcher: alone when idle, together under load, each with its own answer or the error of its group."""

import asyncio

import pytest

from postroom.store.engine.batcher import LONGEST_GATHER_S, Batcher


class Flush:
    """Doubles numbers; waits at its gate when it has one; tells which groups came."""

    def __init__(self, gated: bool = False) -> None:
        self.groups: list[list[int]] = []
        self.begun = asyncio.Event()
        self.gate = asyncio.Event()
        self.error: Exception | None = None
        if not gated:
            self.gate.set()

    async def __call__(self, items: list[int]) -> list[int]:
        self.groups.append(items)
        self.begun.set()
        await self.gate.wait()
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        return [2 * item for item in items]


async def test_a_call_while_idle_is_flushed_alone_and_at_once() -> None:
    flush = Flush()
    gather = Batcher(flush)
    assert await gather(1) == 2
    assert await gather(2) == 4
    assert flush.groups == [[1], [2]]


async def test_calls_during_a_flush_go_together_with_the_next_in_their_order() -> None:
    flush = Flush(gated=True)
    gather = Batcher(flush)
    first = asyncio.ensure_future(gather(0))
    await flush.begun.wait()
    others = [asyncio.ensure_future(gather(n)) for n in range(1, 6)]
    await asyncio.sleep(0)
    flush.gate.set()
    assert await asyncio.gather(first, *others) == [0, 2, 4, 6, 8, 10]
    assert flush.groups == [[0], [1, 2, 3, 4, 5]]


async def test_no_group_is_larger_than_its_most() -> None:
    flush = Flush()
    gather = Batcher(flush, most=4)
    assert await asyncio.gather(*(gather(n) for n in range(10))) == [2 * n for n in range(10)]
    assert [len(group) for group in flush.groups] == [4, 4, 2]


async def test_an_error_reaches_everyone_of_its_group_and_nobody_else() -> None:
    flush = Flush()
    flush.error = OSError("the disk")
    gather = Batcher(flush, most=2)
    answers = await asyncio.gather(*(gather(n) for n in range(4)), return_exceptions=True)
    assert [isinstance(answer, OSError) for answer in answers] == [True, True, False, False]
    assert answers[2:] == [4, 6]


async def test_one_who_gives_up_waiting_does_not_disturb_the_others() -> None:
    flush = Flush(gated=True)
    gather = Batcher(flush)
    impatient, patient = asyncio.ensure_future(gather(1)), asyncio.ensure_future(gather(2))
    await flush.begun.wait()
    impatient.cancel()
    flush.gate.set()
    assert await patient == 4
    with pytest.raises(asyncio.CancelledError):
        await impatient


async def test_one_who_gives_up_does_not_disturb_a_group_that_fails() -> None:
    flush = Flush(gated=True)
    flush.error = OSError("the disk")
    gather = Batcher(flush)
    impatient, patient = asyncio.ensure_future(gather(1)), asyncio.ensure_future(gather(2))
    await flush.begun.wait()
    impatient.cancel()
    flush.gate.set()
    with pytest.raises(OSError, match="the disk"):
        await patient
    assert await gather(3) == 6


async def test_a_flush_that_gives_too_few_answers_is_an_error_to_everyone_and_not_silence() -> None:
    async def forgetful(items: list[int]) -> list[int]:
        return items[1:]

    gather = Batcher(forgetful)
    answers = await asyncio.wait_for(asyncio.gather(gather(1), gather(2), return_exceptions=True), 5)
    assert all(isinstance(answer, Exception) for answer in answers)


async def test_no_group_is_heavier_than_may_be() -> None:
    flush = Flush()
    gather = Batcher(flush, weigh=lambda item: item, heaviest=10)
    assert await asyncio.gather(*(gather(n) for n in (4, 4, 2, 1, 9, 5, 5))) == [8, 8, 4, 2, 18, 10, 10]
    assert flush.groups == [[4, 4, 2], [1, 9], [5, 5]]


async def test_one_that_is_too_heavy_for_any_group_goes_alone_and_holds_up_nobody() -> None:
    flush = Flush()
    gather = Batcher(flush, weigh=lambda item: item, heaviest=10)
    assert await asyncio.gather(*(gather(n) for n in (1, 99, 2, 50, 60, 3))) == [2, 198, 4, 100, 120, 6]
    assert flush.groups == [[1], [99], [2], [50], [60], [3]]


async def test_number_and_weight_both_bound_a_group() -> None:
    flush = Flush()
    gather = Batcher(flush, most=3, weigh=lambda item: item, heaviest=10)
    await asyncio.gather(*(gather(n) for n in (1, 1, 1, 1, 8, 8)))
    assert flush.groups == [[1, 1, 1], [1, 8], [8]]


class Halted:
    """A loop whose time stands still, and moves on when told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.loop = asyncio.get_running_loop()
        self.now = self.loop.time()
        monkeypatch.setattr(self.loop, "time", lambda: self.now)


async def answered_together(gather: "Batcher[int, int]", flush: Flush, halted: Halted) -> None:
    """Four calls that one flush of a second has answered."""
    answers = [gather(n) for n in range(4)]
    await flush.begun.wait()
    halted.now += 1
    flush.gate.set()
    await asyncio.gather(*answers)


async def test_a_batcher_that_gathers_waits_until_half_of_those_answered_last_are_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flush, halted = Flush(gated=True), Halted(monkeypatch)
    gather: Batcher[int, int] = Batcher(flush, gathers=True)
    await answered_together(gather, flush, halted)
    first = gather(4)
    for _ in range(20):
        await asyncio.sleep(0)
    assert flush.groups == [[0, 1, 2, 3]]
    assert await asyncio.gather(first, gather(5)) == [8, 10]
    assert flush.groups == [[0, 1, 2, 3], [4, 5]]


async def test_it_waits_no_longer_than_a_moment_for_those_who_do_not_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    flush, halted = Flush(gated=True), Halted(monkeypatch)
    gather: Batcher[int, int] = Batcher(flush, gathers=True)
    await answered_together(gather, flush, halted)
    first = gather(4)
    await asyncio.sleep(0)
    halted.now += LONGEST_GATHER_S
    assert await first == 8
    assert await gather(5) == 10, "the next one is alone again, and waits for nobody"


async def test_who_comes_later_waits_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    flush, halted = Flush(gated=True), Halted(monkeypatch)
    gather: Batcher[int, int] = Batcher(flush, gathers=True)
    await answered_together(gather, flush, halted)
    halted.now += LONGEST_GATHER_S
    assert await gather(4) == 8
