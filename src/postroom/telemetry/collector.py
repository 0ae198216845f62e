"""Exporters to an OTLP/HTTP collector that may be unreachable for any length of time.

Every call has a timeout, and what could not be sent is not kept. A line is logged when the collector goes away and when
it is back, without its address and headers, which may contain secrets.
"""

import gzip
import logging
import threading
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any

import httpx2
import structlog
from opentelemetry.sdk.metrics.export import MetricExporter, MetricExportResult, MetricsData
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from postroom.settings.sections import TelemetrySettings, read_headers
from postroom.telemetry.otlp import metrics_request, spans_request

log = structlog.get_logger()

ANSWER_WITHIN_S = 5.0
LOG_AT_MOST_EVERY_S = 60.0
RATE_LIMIT_S = 600.0
FIRST_PAUSE_S = 1.0
COMPRESSION = 6
LONGEST_ANSWER = 65_536
TAKEN, NO_ANSWER = range(200, 300), 0
# The statuses by which OTLP asks a sender to come back.
LATER = frozenset({NO_ANSWER, 429, 502, 503, 504})


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


class Collector:
    """Sends requests to one address of the collector, each within a few seconds."""

    def __init__(self, settings: TelemetrySettings, signal: str) -> None:
        self._url = f"{settings.otlp_endpoint}/v1/{signal}"
        self._reachability = Reachability(signal)
        self._ended = threading.Event()
        self._sending = threading.Lock()
        self._http = httpx2.Client(
            headers={
                **(read_headers(settings.otlp_headers.get_secret_value()) if settings.otlp_headers is not None else {}),
                "Content-Type": "application/x-protobuf",
                "Content-Encoding": "gzip",
                "Accept-Encoding": "identity",
            },
            follow_redirects=False,
        )

    def send(self, request: bytes) -> bool:
        """Whether the collector took it. One that is busy, or cannot be reached, is asked again while there is time."""
        packed = gzip.compress(request, COMPRESSION)
        with self._sending:
            until, pause = monotonic() + ANSWER_WITHIN_S, FIRST_PAUSE_S
            status = self._post(packed, until)
            while status in LATER and monotonic() + pause < until and not self._ended.wait(pause):
                pause *= 2
                status = self._post(packed, until)
            self._reachability.note(status in TAKEN)
            if self._ended.is_set():
                self._http.close()
        return status in TAKEN

    def end(self) -> None:
        """Send nothing more, since the process is stopping. A thread that is still sending closes the connection."""
        self._reachability.end()
        self._ended.set()
        if self._sending.acquire(blocking=False):
            self._http.close()
            self._sending.release()

    def _post(self, content: bytes, until: float) -> int:
        """The status of the answer; 0 if there was none. The answer is read only to keep the connection."""
        if self._ended.is_set():
            return NO_ANSWER
        try:
            with self._http.stream("POST", self._url, content=content, timeout=until - monotonic()) as response:
                length = 0
                for piece in response.iter_raw():
                    length += len(piece)
                    if length > LONGEST_ANSWER or monotonic() > until:
                        break
                return response.status_code
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError):
            return NO_ANSWER


class MetricsToCollector(MetricExporter):
    """Sends metrics. Unsent ones are dropped: the next counts include them."""

    def __init__(self, settings: TelemetrySettings) -> None:
        super().__init__()
        self._collector = Collector(settings, "metrics")

    def export(self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any) -> MetricExportResult:
        sent = self._collector.send(metrics_request(metrics_data))
        return MetricExportResult.SUCCESS if sent else MetricExportResult.FAILURE

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        return True

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: Any) -> None:
        self._collector.end()


class SpansToCollector(SpanExporter):
    """Sends spans. Unsent ones are lost."""

    def __init__(self, settings: TelemetrySettings) -> None:
        self._collector = Collector(settings, "traces")

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return SpanExportResult.SUCCESS if self._collector.send(spans_request(spans)) else SpanExportResult.FAILURE

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return True

    def shutdown(self) -> None:
        self._collector.end()


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
    """Limit the span queue, which logs whenever it is full, to one line every ten minutes."""
    logging.getLogger("opentelemetry.sdk._shared_internal").addFilter(_rate_limit)
