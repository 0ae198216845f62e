"""Jobs that a worker has claimed but not started: a small heap, the most urgent first, sized by time.

Claiming in batches is many times cheaper than one by one. But no other worker can take what waits here, so the buffer
holds one job for each free slot and, beyond that, only what the worker gets done in about `horizon_s`, estimated from
its recent speed. So slow jobs are hardly claimed ahead, and after a pause the estimate fades.
"""

import heapq
from collections.abc import Iterable

from postroom.core.jobs.job import Claim, Job

SMALLEST_SAMPLE_S = 0.02
WEIGHT = 0.3
FADES_AFTER_S = 0.1


class Buffer:
    """Claimed jobs in the order in which they will run."""

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

    def wanted(self, free_slots: int, now: float) -> int:
        """How many more jobs to claim. Zero until the buffer is half empty, so that claims stay large."""
        size = free_slots + min(self._most, int(self._current_rate(now) * self._horizon_s))
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
        """Empty the buffer; return the claims to give back."""
        claims = [job.claim for _, _, job in self._heap]
        self._heap.clear()
        return claims

    def observe(self, done: int, now: float) -> None:
        """Update the estimated speed from the number of jobs done since the last call."""
        self._done += done
        if self._sampled_at is None:
            self._sampled_at, self._done = now, 0
        elif (elapsed := now - self._sampled_at) >= SMALLEST_SAMPLE_S:
            self._rate = self._current_rate(now)
            self._rate += WEIGHT * (self._done / elapsed - self._rate)
            self._sampled_at, self._done = now, 0

    def _current_rate(self, now: float) -> float:
        """Jobs per second; decays while nothing finishes."""
        if self._sampled_at is None:
            return 0.0
        silent = max(0.0, now - self._sampled_at - FADES_AFTER_S)
        return self._rate * FADES_AFTER_S / (FADES_AFTER_S + silent)
