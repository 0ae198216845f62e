"""Exporters to an OTLP/HTTP collector that may be unreachable for any length of time.

Every call has a timeout, and what could not be sent is not kept. A line is logged when the collector goes away and when
it is back, without its address and headers, which may contain secrets.
"""

import logging
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any

import structlog
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics.export import MetricExporter, MetricExportResult, MetricsData
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from postroom.settings.sections import TelemetrySettings, read_headers

log = structlog.get_logger()

ANSWER_WITHIN_S = 5.0
LOG_AT_MOST_EVERY_S = 60.0
RATE_LIMIT_S = 600.0


class Reachability:
    """Logs when the collector goes away or comes back, at most once a minute."""

    def __init__(self, signal: str, now: Callable[[], float] = monotonic) -> None:
        self._signal = signal
        self._now = now
        self._logged = True
        self._logged_at = float("-inf")
        self._ended = False

    def end(self) -> None:
        """Log nothing more, since the process is stopping."""
        self._ended = True

    def note(self, answered: bool) -> None:
        if self._ended or answered == self._logged or self._now() - self._logged_at < LOG_AT_MOST_EVERY_S:
            return
        self._logged, self._logged_at = answered, self._now()
        if answered:
            log.info("telemetry.collector_back", signal=self._signal)
        else:
            log.warning("telemetry.collector_away", signal=self._signal)


class MetricsToCollector(MetricExporter):
    """Sends metrics. Unsent ones are dropped: the next counts include them."""

    def __init__(self, settings: TelemetrySettings) -> None:
        super().__init__()
        self._reachability = Reachability("metrics")
        self._otlp = OTLPMetricExporter(
            endpoint=f"{settings.otlp_endpoint}/v1/metrics",
            headers=_headers(settings),
            timeout=ANSWER_WITHIN_S,
            compression=Compression.Gzip,
        )

    def export(self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any) -> MetricExportResult:
        result = self._otlp.export(metrics_data)  # pyright: ignore[reportUnknownMemberType]
        self._reachability.note(result is MetricExportResult.SUCCESS)
        return result

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        return True

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: Any) -> None:
        self._reachability.end()
        self._otlp.shutdown()  # pyright: ignore[reportUnknownMemberType]


class SpansToCollector(SpanExporter):
    """Sends spans. Unsent ones are lost."""

    def __init__(self, settings: TelemetrySettings) -> None:
        self._reachability = Reachability("traces")
        self._otlp = OTLPSpanExporter(
            endpoint=f"{settings.otlp_endpoint}/v1/traces",
            headers=_headers(settings),
            timeout=ANSWER_WITHIN_S,
            compression=Compression.Gzip,
        )

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._otlp.export(spans)
        self._reachability.note(result is SpanExportResult.SUCCESS)
        return result

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return True

    def shutdown(self) -> None:
        self._reachability.end()
        self._otlp.shutdown()


def _headers(settings: TelemetrySettings) -> dict[str, str]:
    return read_headers(settings.otlp_headers.get_secret_value()) if settings.otlp_headers is not None else {}


class RateLimitedFilter(logging.Filter):
    """Lets one record through every ten minutes."""

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        super().__init__()
        self._now = now
        self._passed_at = float("-inf")

    def filter(self, record: logging.LogRecord) -> bool:
        if self._now() - self._passed_at < RATE_LIMIT_S:
            return False
        self._passed_at = self._now()
        return True


_rate_limit = RateLimitedFilter()


def quiet_libraries() -> None:
    """Silence the exporters: they log every attempt and may quote a header, and `Reachability` logs what matters.

    The span queue logs whenever it is full, so it is limited to one line every ten minutes.
    """
    logging.getLogger("opentelemetry.exporter.otlp").setLevel(logging.CRITICAL)
    logging.getLogger("opentelemetry.sdk._shared_internal").addFilter(_rate_limit)
