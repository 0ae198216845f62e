"""Clocks that a test moves, and a time zone far from midnight."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

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


def zone_at_noon() -> ZoneInfo:
    """A time zone in which it is about noon now, for tests of a day: none of them meets midnight."""
    west = datetime.now(UTC).hour - 12  # names with `+` lie west of Greenwich
    return ZoneInfo(f"Etc/GMT{west:+d}" if west else "Etc/GMT")
