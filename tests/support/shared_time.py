"""A clock that several processes read, and that moves only while the process that works has nothing to do: quota and
pauses take their time by it, and neither a slow machine nor a process that was killed takes any.
"""

import asyncio
import mmap
import selectors
import struct
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from support.fast_time import BEGIN

_SECONDS = struct.Struct("d")
# While an answer is on its way, the loop looks for it so often.
_LOOKS_S = 0.05


class SharedTime:
    """Seconds in a file. One process at a time moves them."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_bytes(_SECONDS.pack(0.0))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _SECONDS.size)

    def seconds(self) -> float:
        return float(_SECONDS.unpack(self._memory[:])[0])

    def now(self) -> datetime:
        return BEGIN + timedelta(seconds=self.seconds())

    def move(self, seconds: float) -> None:
        self._memory[:] = _SECONDS.pack(self.seconds() + seconds)


class _IdleSelector(selectors.DefaultSelector):
    """Where a loop would wait, the shared time moves on instead, unless an answer is awaited."""

    time: SharedTime | None = None
    awaited = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if found or timeout is None or timeout <= 0:
            return found or (super().select(timeout) if timeout is None else found)
        while self.awaited:
            if found := super().select(_LOOKS_S):
                return found
        if self.time is not None:
            self.time.move(timeout)
        return super().select(0)


class IdleTimeLoop(asyncio.SelectorEventLoop):
    """A loop that lives in the shared time, once it was given one."""

    def __init__(self) -> None:
        self.selector = _IdleSelector()
        super().__init__(self.selector)

    def live_in(self, time: SharedTime) -> None:
        self.selector.time = time

    def time(self) -> float:
        return 0.0 if self.selector.time is None else self.selector.time.seconds()

    @contextmanager
    def awaiting_answer(self) -> Generator[None]:
        self.selector.awaited += 1
        try:
            yield
        finally:
            self.selector.awaited -= 1


def idle_time_loop() -> IdleTimeLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, IdleTimeLoop)
    return loop
