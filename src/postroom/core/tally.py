"""Counts kept as plain integers, since the hot path counts more often than an exporter reads.

Attributes are positional, in the order in which the metric declares them.

Only the event loop counts, but an exporter may read from its own thread: it reads copies, each made in one step.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping

from postroom.core.metrics import Metric, MetricKind

Attributes = tuple[str, ...]
Key = tuple[Metric, Attributes]

# A metric with more combinations of attributes than this has an attribute that it should not have.
MOST_SERIES = 1000
OVERFLOW = "overflow"


class Buckets:
    """A histogram: the number of values under each bound, their total number, and their sum."""

    __slots__ = ("counts", "total")

    def __init__(self, bounds: int) -> None:
        self.counts = [0] * (bounds + 1)
        self.total = 0.0

    @property
    def count(self) -> int:
        return sum(self.counts)


class Tally:
    """All counts of this process."""

    def __init__(self) -> None:
        self.counts: defaultdict[Key, int] = defaultdict(int)
        self.histograms: dict[Key, Buckets] = {}
        self._series: defaultdict[Metric, int] = defaultdict(int)

    def count(self, metric: Metric, *attributes: str, by: int = 1) -> None:
        key = metric, attributes
        counted = self.counts.get(key)
        if counted is None:
            key = self._new_key(metric, attributes, "counter")
            counted = self.counts[key]
        self.counts[key] = counted + by

    def observe(self, metric: Metric, value: float, *attributes: str) -> None:
        """Add a value to its bucket. Negative ones, from a clock that was set back, count as 0."""
        buckets = self.histograms.get((metric, attributes))
        if buckets is None:
            key = self._new_key(metric, attributes, "histogram")
            buckets = self.histograms.setdefault(key, Buckets(len(metric.buckets)))
        value = value if value > 0 else 0.0
        buckets.counts[bisect_left(metric.buckets, value)] += 1
        buckets.total += value

    def counts_of(self, metric: Metric) -> dict[Attributes, int]:
        """The counts by attributes. A copy."""
        return {attributes: count for (each, attributes), count in self.counts.copy().items() if each is metric}

    def histograms_of(self, metric: Metric) -> dict[Attributes, Buckets]:
        """The histograms by attributes. The buckets themselves are live."""
        return {attributes: buckets for (each, attributes), buckets in self.histograms.copy().items() if each is metric}

    def _new_key(self, metric: Metric, attributes: Attributes, kind: MetricKind) -> Key:
        """The key for new attributes. Beyond a limit they all share one key, so that memory stays bounded."""
        check_places(metric, attributes, kind)
        if self._series[metric] >= MOST_SERIES:
            return metric, (OVERFLOW,) * len(attributes)
        self._series[metric] += 1
        return metric, attributes


class Gauges:
    """The current values of the gauges, as last measured."""

    def __init__(self) -> None:
        self._values: dict[Metric, dict[Attributes, float]] = {}

    def show(self, metric: Metric, values: Mapping[Attributes, float]) -> None:
        """Replace all values of this metric, including those that are missing from `values`."""
        for attributes in values:
            check_places(metric, attributes, "gauge")
        self._values[metric] = dict(values)

    def values_of(self, metric: Metric) -> dict[Attributes, float]:
        return self._values.get(metric, {})


def check_places(metric: Metric, attributes: Attributes, kind: MetricKind) -> None:
    """Check that the metric is used as declared. Raises TypeError otherwise: a mistake of the caller."""
    if metric.kind != kind:
        raise TypeError(f"{metric.name} is a {metric.kind}, not a {kind}")
    if len(attributes) != len(metric.attributes):
        raise TypeError(f"{metric.name} takes {', '.join(metric.attributes)}; it was given {len(attributes)} values")
