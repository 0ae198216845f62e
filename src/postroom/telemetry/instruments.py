"""The tally and the gauges as OpenTelemetry instruments.

Counters and gauges are observable instruments: they are read on demand. The SDK has no observable histogram, and
recording every value in an ordinary one would cost what the tally saves. So a reader adds the tally's buckets to what
it has collected, as the data points that the SDK would have made of them.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from time import time_ns
from typing import Any, cast

from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.metrics import CallbackOptions, Meter, Observation
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Histogram,
    HistogramDataPoint,
    MetricExporter,
    MetricsData,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.metrics.export import (
    Metric as CollectedMetric,
)
from prometheus_client import CollectorRegistry

from postroom.core.metrics import METRICS, Metric
from postroom.core.tally import Attributes, Buckets, Gauges, Tally

HISTOGRAMS = tuple(metric for metric in METRICS if metric.kind == "histogram")
# The SDK wants a minimum and a maximum, which the tally does not keep; the exporters leave out None.
NOT_KEPT = cast("float", None)


def create_instruments(meter: Meter, tally: Tally, gauges: Gauges) -> None:
    """Create an observable instrument for each counter and gauge."""
    for metric in METRICS:
        match metric.kind:
            case "counter":
                callback = _observing(metric, lambda each: _from_zero(each, tally))
                meter.create_observable_counter(metric.name, [callback], metric.unit, metric.description)
            case "gauge":
                callback = _observing(metric, gauges.values_of)
                meter.create_observable_gauge(metric.name, [callback], metric.unit, metric.description)
            case "histogram":
                pass


def _from_zero(metric: Metric, tally: Tally) -> Mapping[Attributes, float]:
    return dict.fromkeys(metric.known, 0) | tally.counts_of(metric)


def _observing(
    metric: Metric, values: Callable[[Metric], Mapping[Attributes, float]]
) -> Callable[[CallbackOptions], Iterable[Observation]]:
    def observe(_options: CallbackOptions) -> Iterable[Observation]:
        return [
            Observation(value, _attributes_by_name(metric, attributes)) for attributes, value in values(metric).items()
        ]

    return observe


def _attributes_by_name(metric: Metric, attributes: Attributes) -> dict[str, str]:
    return dict(zip(metric.attributes, attributes, strict=True))


class Histograms:
    """Adds the tally's histograms to what a reader has collected."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._since = time_ns()

    def added_to(self, collected: MetricsData) -> MetricsData:
        """Add the histograms. `collected` is never empty: counters with known attributes always report."""
        resource, *_ = collected.resource_metrics
        scope, *others = resource.scope_metrics
        with_ours = replace(scope, metrics=[*scope.metrics, *self._metrics(time_ns())])
        return replace(collected, resource_metrics=[replace(resource, scope_metrics=[with_ours, *others])])

    def _metrics(self, now: int) -> Iterable[CollectedMetric]:
        for metric in HISTOGRAMS:
            found = self._tally.histograms_of(metric)
            points = [self._point(metric, attributes, buckets, now) for attributes, buckets in found.items()]
            if points:
                data = Histogram(points, AggregationTemporality.CUMULATIVE)
                yield CollectedMetric(metric.name, metric.description, metric.unit, data)

    def _point(self, metric: Metric, attributes: Attributes, buckets: Buckets, now: int) -> HistogramDataPoint:
        # The sum may be one value ahead of the counts, or behind, if the event loop adds while a thread reads.
        counts = buckets.counts.copy()
        return HistogramDataPoint(
            attributes=_attributes_by_name(metric, attributes),
            start_time_unix_nano=self._since,
            time_unix_nano=now,
            count=sum(counts),
            sum=buckets.total,
            bucket_counts=counts,
            explicit_bounds=metric.buckets,
            min=NOT_KEPT,
            max=NOT_KEPT,
        )


class ScrapedReader(PrometheusMetricReader):
    """Collected when Prometheus scrapes."""

    def __init__(self, tally: Tally, registry: CollectorRegistry) -> None:
        self._histograms = Histograms(tally)
        super().__init__(scope_info_enabled=False, registry=registry)

    def _receive_metrics(self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any) -> None:
        more = self._histograms.added_to(metrics_data)
        super()._receive_metrics(more, timeout_millis)  # pyright: ignore[reportUnknownMemberType]


class PushedReader(PeriodicExportingMetricReader):
    """Collected and sent by its own thread every few seconds."""

    def __init__(self, tally: Tally, exporter: MetricExporter, every_s: float, within_s: float) -> None:
        self._histograms = Histograms(tally)
        super().__init__(exporter, every_s * 1000, within_s * 1000)

    def _receive_metrics(self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any) -> None:
        more = self._histograms.added_to(metrics_data)
        super()._receive_metrics(more, timeout_millis)  # pyright: ignore[reportUnknownMemberType]
