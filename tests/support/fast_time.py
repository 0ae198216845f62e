"""A clock that runs faster than real time, the same in every process: minutes of quota and outage pass in seconds."""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

BEGIN = datetime(2026, 11, 15, 8, 0, tzinfo=UTC)


class FastTime:
    """`speed` seconds pass in one. CLOCK_MONOTONIC is one for the whole machine: `begun_at` is all to share."""

    def __init__(self, speed: float, begun_at: float | None = None) -> None:
        self.speed = speed
        self.begun_at = time.monotonic() if begun_at is None else begun_at

    def seconds(self) -> float:
        return (time.monotonic() - self.begun_at) * self.speed

    def now(self) -> datetime:
        return BEGIN + timedelta(seconds=self.seconds())

    def call_later(self, delay: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(delay / self.speed, callback)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / self.speed)
