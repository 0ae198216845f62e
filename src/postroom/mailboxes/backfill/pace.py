"""The pace of a backfill: its messages spread evenly over the hour, never more than a second's worth at once."""

from collections.abc import Callable

HOUR_S = 3_600.0
LARGEST_BATCH = 50


class Pace:
    """When the next messages may be read, and how many. The clock is monotonic, in seconds."""

    def __init__(self, per_hour: int, clock: Callable[[], float], wait_s: float = 0.0) -> None:
        self._between = HOUR_S / per_hour
        self._clock = clock
        self._next_at = clock() + wait_s
        self.at_once = max(1, min(LARGEST_BATCH, int(1 / self._between)))

    def wait_s(self) -> float:
        """How long to wait before the next message."""
        return max(0.0, self._next_at - self._clock())

    def take(self, count: int) -> None:
        """Record that messages are being read. A pause before them earns no burst after it."""
        self._next_at = max(self._next_at, self._clock()) + count * self._between

    def hold(self, wait_s: float) -> None:
        """Wait at least for this long before the next message."""
        self._next_at = max(self._next_at, self._clock() + wait_s)
