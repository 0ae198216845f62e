"""What a worker has claimed and not begun: a small heap, the most urgent first, sized by time.

Claims in batches are many times cheaper than one by one. But what waits here is out of everyone else's reach, so the
buffer holds one job for each free place and, beyond that, only what the worker does in about `horizon_s`, judged by
how fast it has been lately. Slow jobs are therefore hardly claimed ahead, and after a pause the judgement fades.
"""

import heapq
from collections.abc import Iterable

from postroom.core.jobs.job import Claim, Job

SMALLEST_SAMPLE_S = 0.02
WEIGHT = 0.3
FADES_AFTER_S = 0.1


class Buffer:
    """Claimed jobs in the order in which they will be run."""

    def __init__(self, most: int, horizon_s: float) -> None:
        self._heap: list[tuple[int, int, Job]] = []
        self._most = most
        self._horizon_s = horizon_s
        self._rate = 0.0
        self._sampled_at: float | None = None
        self._done = 0
        self.touched_at = 0.0

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def highest_priority(self) -> int | None:
        return -self._heap[0][0] if self._heap else None

    def wants(self, free_places: int, now: float) -> int:
        """How many more to claim; none until half of what it should hold is used, so that claims stay large."""
        size = free_places + min(self._most, int(self._current_rate(now) * self._horizon_s))
        return size - len(self._heap) if len(self._heap) * 2 <= size else 0

    def add(self, jobs: Iterable[Job], now: float) -> None:
        if not self._heap:
            self.touched_at = now
        for job in jobs:
            heapq.heappush(self._heap, (-job.priority, job.seq, job))

    def pop(self, now: float) -> Job:
        self.touched_at = now
        return heapq.heappop(self._heap)[2]

    def seqs(self) -> list[int]:
        return [job.seq for _, _, job in self._heap]

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
            self._rate = self._current_rate(now)
            self._rate += WEIGHT * (self._done / elapsed - self._rate)
            self._sampled_at, self._done = now, 0

    def _current_rate(self, now: float) -> float:
        """Jobs a second, less and less believed the longer nothing has ended."""
        if self._sampled_at is None:
            return 0.0
        silent = max(0.0, now - self._sampled_at - FADES_AFTER_S)
        return self._rate * FADES_AFTER_S / (FADES_AFTER_S + silent)
