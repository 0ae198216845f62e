"""What a worker has claimed and not begun: a small heap, the most urgent first, sized by time.

Claims in batches are many times cheaper than one by one, but what waits here waits behind nobody else's back only as
long as it is short: the buffer holds about as much as the worker does in `horizon_s`.
"""

import heapq
from collections.abc import Iterable

from postroom.core.jobs import Claim, Job

SMALLEST_SAMPLE_S = 0.02
WEIGHT = 0.3


class Buffer:
    """Claimed jobs in the order in which they will be run."""

    def __init__(self, concurrency: int, most: int, horizon_s: float) -> None:
        self._heap: list[tuple[int, int, Job]] = []
        self._concurrency = concurrency
        self._most = most
        self._horizon_s = horizon_s
        self._rate = 0.0
        self._sampled_at: float | None = None
        self._done = 0

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def size(self) -> int:
        """How many jobs are about `horizon_s` of work; at least one for each place that may become free."""
        return max(self._concurrency, min(self._most, int(self._rate * self._horizon_s)))

    @property
    def wants(self) -> int:
        """How many more to claim; none until half has been used, so that claims stay large."""
        return self.size - len(self._heap) if len(self._heap) * 2 <= self.size else 0

    @property
    def highest_priority(self) -> int | None:
        return -self._heap[0][0] if self._heap else None

    def add(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            heapq.heappush(self._heap, (-job.priority, job.seq, job))

    def pop(self) -> Job:
        return heapq.heappop(self._heap)[2]

    def drain(self) -> list[Claim]:
        """Empties the buffer, for giving everything back."""
        claims = [job.claim for _, _, job in self._heap]
        self._heap.clear()
        return claims

    def observe(self, done: int, now: float) -> None:
        """Learns how fast the worker is from what it has done since it was last told."""
        self._done += done
        if self._sampled_at is None:
            self._sampled_at, self._done = now, 0
        elif (elapsed := now - self._sampled_at) >= SMALLEST_SAMPLE_S:
            self._rate += WEIGHT * (self._done / elapsed - self._rate)
            self._sampled_at, self._done = now, 0
