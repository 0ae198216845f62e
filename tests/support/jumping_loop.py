"""An event loop whose time jumps from one event to the next: an hour of waiting takes no time."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _NoWaiting(selectors.SelectSelector):
    """Where a loop would wait, the time moves on instead. Without anything to wait for, somebody waits for ever."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "everybody waits, and nothing will happen any more"
        self.now += timeout
        return super().select(0)


class JumpingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.selector = _NoWaiting()
        super().__init__(self.selector)

    def time(self) -> float:
        return self.selector.now


def run(scenario: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(scenario)


def now() -> float:
    return asyncio.get_running_loop().time()
