"""Counts kept as plain integers, since the hot path counts more often than anyone looks.

An exporter reads them when it is asked. Whoever counts gives the attributes by place, as the metric declares them.

Only the event loop counts, but an exporter may read from a thread of its own: what it reads are copies, each made in
one step.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping

from postroom.core.metrics import Metric, MetricKind

Attributes = tuple[str, ...]
Key = tuple[Metric, Attributes]

# A metric that has this many combinations of attributes has attributes that it should not have.
MOST_SERIES = 1000
OVERFLOW = "overflow"


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
    """All that was counted in this process."""

    def __init__(self) -> None:
        self.counts: defaultdict[Key, int] = defaultdict(int)
        self.histograms: dict[Key, Buckets] = {}
        self._series: defaultdict[Metric, int] = defaultdict(int)

    def count(self, metric: Metric, *attributes: str, by: int = 1) -> None:
        key = metric, attributes
        counted = self.counts.get(key)
        if counted is None:
            key = self._checked(metric, attributes, "counter")
            counted = self.counts[key]
        self.counts[key] = counted + by

    def observe(self, metric: Metric, value: float, *attributes: str) -> None:
        """Puts a span of time into its bucket. A clock that was set back makes no negative times."""
        buckets = self.histograms.get((metric, attributes))
        if buckets is None:
            key = self._checked(metric, attributes, "histogram")
            buckets = self.histograms.setdefault(key, Buckets(len(metric.buckets)))
        value = value if value > 0 else 0.0
        buckets.counts[bisect_left(metric.buckets, value)] += 1
        buckets.total += value

    def counts_of(self, metric: Metric) -> dict[Attributes, int]:
        """What was counted, by attributes. A copy."""
        return {attributes: count for (each, attributes), count in self.counts.copy().items() if each is metric}

    def histograms_of(self, metric: Metric) -> dict[Attributes, Buckets]:
        """The histograms, by attributes. The buckets themselves are live."""
        return {attributes: buckets for (each, attributes), buckets in self.histograms.copy().items() if each is metric}

    def _checked(self, metric: Metric, attributes: Attributes, kind: MetricKind) -> Key:
        """The key for attributes not seen before. Too many of them share one, so that memory stays bounded."""
        check_places(metric, attributes, kind)
        if self._series[metric] >= MOST_SERIES:
            return metric, (OVERFLOW,) * len(attributes)
        self._series[metric] += 1
        return metric, attributes


class Gauges:
    """What is so at this moment, as the product found it when it last looked."""

    def __init__(self) -> None:
        self._values: dict[Metric, dict[Attributes, float]] = {}

    def show(self, metric: Metric, values: Mapping[Attributes, float]) -> None:
        """Replaces everything that was shown of this metric: what is not there any more is not shown any more."""
        for attributes in values:
            check_places(metric, attributes, "gauge")
        self._values[metric] = dict(values)

    def values_of(self, metric: Metric) -> dict[Attributes, float]:
        return self._values.get(metric, {})


def check_places(metric: Metric, attributes: Attributes, kind: MetricKind) -> None:
    """Raises TypeError for a use that the metric does not allow: a mistake of whoever counts."""
    if metric.kind != kind:
        raise TypeError(f"{metric.name} is a {metric.kind}, not a {kind}")
    if len(attributes) != len(metric.attributes):
        raise TypeError(f"{metric.name} takes {', '.join(metric.attributes)}; it was given {len(attributes)} values")
