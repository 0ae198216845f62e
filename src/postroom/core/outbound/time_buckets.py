"""Times counted in buckets, four to each doubling, so that the counts of many hours and processes can be added up.

Bucket 0 holds what took less than a microsecond. Every other begins at 4, 5, 6 or 7 quarters of a power of two of
microseconds and ends where the next begins, so that a time read from a bucket is wrong by a quarter at most.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Spread:
    """How long something took, in seconds. The mean is exact, the percentiles are as exact as the buckets."""

    count: int
    mean_s: float
    p50_s: float
    p95_s: float
    p99_s: float


class TimeBuckets:
    """How many times fell into each bucket, and their sum."""

    def __init__(self, counts: Mapping[int, int] | None = None, total_us: int = 0) -> None:
        self.counts: Counter[int] = Counter(counts or {})
        self.total_us = total_us

    def add(self, time_us: int, times: int = 1) -> None:
        self.counts[bucket_of(time_us)] += times
        self.total_us += max(0, time_us) * times

    def merge(self, other: "TimeBuckets") -> None:
        self.counts += other.counts
        self.total_us += other.total_us

    def spread(self) -> Spread | None:
        """Mean and percentiles; None if nothing was counted."""
        count = self.counts.total()
        if not count:
            return None
        mean = self.total_us / count / 1e6
        return Spread(count, mean, *(self.percentile_us(share) / 1e6 for share in (0.5, 0.95, 0.99)))

    def percentile_us(self, share: float) -> float:
        """The time below which this share of all times lies. Times are taken as spread evenly within a bucket."""
        rank, passed = share * self.counts.total(), 0
        for bucket, count in sorted(self.counts.items()):
            if passed + count >= rank:
                low, high = bounds_us(bucket)
                return low + (high - low) * max(0.0, rank - passed) / count
            passed += count
        return 0.0


def microseconds(time: timedelta) -> int:
    return max(0, time // _MICROSECOND)


def bucket_of(time_us: int) -> int:
    """The bucket of a time; a negative one, from a clock that was set back, counts as none."""
    if time_us < 1:
        return 0
    octave = time_us.bit_length() - 1
    return 1 + 4 * octave + ((time_us << 2) >> octave) - 4


def bounds_us(bucket: int) -> tuple[float, float]:
    """Where a bucket begins, and where the next one does."""
    return (0.0, 1.0) if bucket < 1 else (_start(bucket), _start(bucket + 1))


def _start(bucket: int) -> float:
    octave, quarter = divmod(bucket - 1, 4)
    return 2.0**octave * (4 + quarter) / 4
