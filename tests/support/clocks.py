"""Clocks that a test moves."""

from datetime import UTC, datetime, timedelta

START = datetime(2026, 11, 15, 8, 0, tzinfo=UTC)


class ManualClock:
    """A clock that stands still until it is moved."""

    def __init__(self, now: datetime = START) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def forward(self, seconds: float) -> datetime:
        self.now += timedelta(seconds=seconds)
        return self.now
