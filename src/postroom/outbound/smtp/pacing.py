"""Lets mail to a destination begin when it is its turn, or says how long it would have to wait.

A mail waits here only for a moment: longer, and it would hold a place that mail to another destination could use.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from postroom.core.outbound.pacing import DestinationPace, Feedback, PaceLimits

MOST_KNOWN = 10_000


@dataclass(frozen=True, slots=True)
class Turn:
    """The right to one transaction. It must be ended."""

    end: Callable[[Feedback], None]


@dataclass(slots=True)
class _Line:
    pace: DestinationPace
    waiting: deque[asyncio.Future[Turn | float]] = field(default_factory=deque["asyncio.Future[Turn | float]"])


class Pacing:
    def __init__(self, limits: PaceLimits, longest_wait_s: float, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._longest_wait_s = longest_wait_s
        self._clock = clock
        self._lines: dict[str, _Line] = {}

    async def begin(self, destination: str) -> Turn | float:
        """A turn, once there is one; or how many seconds it would take, if that is too long to wait here."""
        line = self._line(destination)
        now = self._clock()
        if not line.waiting and line.pace.may_begin(now):
            return self._turn(line)
        wait = line.pace.wait(len(line.waiting), now)
        if wait > self._longest_wait_s or now < line.pace.rests_until:
            return wait
        return await self._wait_in_line(line)

    async def _wait_in_line(self, line: _Line) -> Turn | float:
        place: asyncio.Future[Turn | float] = asyncio.get_running_loop().create_future()
        line.waiting.append(place)
        try:
            async with asyncio.timeout(4 * self._longest_wait_s):
                return await place
        except TimeoutError:
            return place.result() if _has_result(place) else line.pace.wait(len(line.waiting), self._clock())
        except asyncio.CancelledError:
            if _has_result(place) and isinstance(turn := place.result(), Turn):
                turn.end("neither")
            raise

    def _turn(self, line: _Line) -> Turn:
        began = self._clock()
        line.pace.begin(began)
        return Turn(lambda feedback: self._end(line, began, feedback))

    def _end(self, line: _Line, began: float, feedback: Feedback) -> None:
        """End a transaction; call those that may begin now, or send all away if the destination is left alone."""
        now = self._clock()
        line.pace.end(began, now, feedback)
        while line.waiting:
            rests = line.pace.rests_until - now
            if rests <= 0 and not line.pace.may_begin(now):
                return
            place = line.waiting.popleft()
            if not place.done():
                place.set_result(rests if rests > 0 else self._turn(line))

    def _line(self, destination: str) -> _Line:
        line = self._lines.get(destination)
        if line is None:
            if len(self._lines) >= MOST_KNOWN:
                self._lines = {
                    name: each for name, each in self._lines.items() if each.waiting or not each.pace.is_ordinary
                }
            line = self._lines[destination] = _Line(DestinationPace(self._limits))
        return line


def _has_result(place: asyncio.Future[Turn | float]) -> bool:
    return place.done() and not place.cancelled()
