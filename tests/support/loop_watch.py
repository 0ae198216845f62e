"""Shows that the event loop goes on while a thread works, whatever else the machine does.

Milliseconds of wall time say how busy the machine is. What is measured here is processor time, and only against other
processor time of the same moment: how far the thread's work got between two turns of the loop, and how much work the
loop itself did in one turn. Work that runs on the loop's own thread, or that keeps the interpreter to itself, is done
as a whole between two turns. On a loaded machine the loop may be left without a processor, so a caller asks for the
best of a few tries; blocking work never has a good one.
"""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

TRIES = 30
GOOD_SHARE = 0.5


@dataclass(frozen=True)
class LoopShare:
    """How one piece of work was shared between the thread of `asyncio.to_thread` and the event loop.

    Both shares are parts of the processor time that the thread took: the most that it got done between two turns of the
    loop, and the most that the loop's own thread worked in one turn.
    """

    thread_s: float
    between_turns: float
    in_one_turn: float

    @property
    def worst(self) -> float:
        return max(self.between_turns, self.in_one_turn)


class LoopWatch:
    """Gives the running event loop one known thread for `asyncio.to_thread`, and watches both."""

    def __init__(self) -> None:
        self._thread = 0
        executor = ThreadPoolExecutor(1, initializer=self._note_thread)
        asyncio.get_running_loop().set_default_executor(executor)
        executor.submit(lambda: None).result()

    def _note_thread(self) -> None:
        self._thread = threading.get_ident()

    async def best(self, prepare: Callable[[], Awaitable[Coroutine[Any, Any, object]]]) -> LoopShare:
        """The share in the first good try, or in the best when none is good. Only what `prepare` returns is watched."""
        shares: list[LoopShare] = []
        while len(shares) < TRIES and (not shares or shares[-1].worst > GOOD_SHARE):
            shares.append(await self._share(await prepare()))
        return min(shares, key=lambda share: share.worst)

    async def _share(self, work: Coroutine[Any, Any, object]) -> LoopShare:
        clock = time.pthread_getcpuclockid(self._thread)
        begun = thread_at = time.clock_gettime(clock)
        loop_at = time.thread_time()
        most_in_thread = most_on_loop = 0.0
        working = asyncio.create_task(work)
        while not working.done():
            await asyncio.sleep(0)
            thread_now, loop_now = time.clock_gettime(clock), time.thread_time()
            most_in_thread = max(most_in_thread, thread_now - thread_at)
            most_on_loop = max(most_on_loop, loop_now - loop_at)
            thread_at, loop_at = thread_now, loop_now
        await working
        whole = max(time.clock_gettime(clock) - begun, 1e-9)
        return LoopShare(whole, most_in_thread / whole, most_on_loop / whole)
