"""Counts kept as plain integers, since the hot path counts more often than anyone looks.

An exporter reads them when it is asked. Whoever counts gives the attributes by place, as the metric declares them.
"""

from bisect import bisect_left
from collections import defaultdict

from postroom.core.metrics import Metric

Key = tuple[Metric, tuple[str, ...]]


class Buckets:
    """A histogram: how many values fell under each bound, how many in all, and their sum."""

    __slots__ = ("counts", "total")

    def __init__(self, bounds: int) -> None:
        self.counts = [0] * (bounds + 1)
        self.total = 0.0

    @property
    def count(self) -> int:
        return sum(self.counts)


class Tally:
    """All that was counted in this process. Used from its event loop only."""

    def __init__(self) -> None:
        self.counts: defaultdict[Key, int] = defaultdict(int)
        self.histograms: dict[Key, Buckets] = {}

    def count(self, metric: Metric, *attributes: str, by: int = 1) -> None:
        self.counts[metric, attributes] += by

    def observe(self, metric: Metric, value: float, *attributes: str) -> None:
        buckets = self.histograms.get((metric, attributes))
        if buckets is None:
            buckets = self.histograms[metric, attributes] = Buckets(len(metric.buckets))
        buckets.counts[bisect_left(metric.buckets, value)] += 1
        buckets.total += value
