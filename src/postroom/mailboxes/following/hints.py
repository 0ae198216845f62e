"""Hints that the mailbox may have changed, and the pause between two rounds that they end. They only make the next
round come sooner: polling finds everything too.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Protocol

from postroom.core.errors import PostroomError


class Hints(Protocol):
    @property
    def problem(self) -> PostroomError | None:
        """Why there are no hints until a person acts; None if all is well, or the problem is temporary."""
        ...

    async def wait(self) -> None:
        """Return when the mailbox may have changed. Does not raise for temporary errors."""
        ...


class NoHints:
    """No hints: only polling."""

    problem: PostroomError | None = None

    async def wait(self) -> None:
        await asyncio.Event().wait()


class RoundPause:
    """The pause between two rounds: ended by a hint, by a request for a round, or by time."""

    def __init__(self, hints: Hints) -> None:
        self._hints = hints
        self._asked = asyncio.Event()
        self._hinted = asyncio.Event()
        self._heeded = asyncio.Event()

    @property
    def problem(self) -> PostroomError | None:
        return self._hints.problem

    def end(self) -> None:
        self._asked.set()

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[None]:
        """Listen for hints all the time: one that arrives during a round makes the next one follow at once."""
        task = asyncio.create_task(self._listen(), name="mail-hints")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})

    async def wait(self, longest: timedelta, stop: asyncio.Event, hurried: bool = True) -> None:
        """Wait. After an error hints do not shorten the wait, so that a failing mailbox is not polled ever faster."""
        ends = [stop, self._asked, *([self._hinted] if hurried else [])]
        await _first_of(ends, longest)
        self._asked.clear()
        self._hinted.clear()
        self._heeded.set()

    async def _listen(self) -> None:
        while True:
            await self._hints.wait()
            self._heeded.clear()
            self._hinted.set()
            # The next round sees everything that further hints could report before it begins.
            await self._heeded.wait()


async def _first_of(events: Iterable[asyncio.Event], longest: timedelta) -> None:
    waiting = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, timeout=longest.total_seconds(), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)
