"""The wall clock as an argument, so that tests can move it by hand."""

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]


def wall_clock() -> datetime:
    return datetime.now(UTC)
