"""Exports metrics and traces: Prometheus scrapes `/metrics`, an OTLP collector is sent both.

    Tally, Gauges ──► instruments ──► ScrapedReader ──► GET /metrics
                                 └──► PushedReader ──┐
    span() ──► a bounded queue ──────────────────────┴──► OTLP/HTTP, from threads of their own

Nothing here slows down a message: counts are read on demand, and spans that do not fit into the queue are dropped.

This takes 0.3 s to import, so only `compose` imports it.
"""

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TYPE_CHECKING

import structlog
from opentelemetry.sdk.metrics import AlwaysOffExemplarFilter, MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader
from opentelemetry.sdk.resources import Resource
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from postroom import __version__
from postroom.core.tally import Gauges, Tally
from postroom.settings.sections import TelemetrySettings
from postroom.telemetry.instruments import PushedReader, ScrapedReader, create_instruments
from postroom.telemetry.tracing import use_tracer

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

log = structlog.get_logger()

SCOPE = "postroom"
METRICS_EVERY_S = 15.0
SPANS_EVERY_S = 2.0
MOST_SPANS_WAITING = 2048
MOST_SPANS_AT_ONCE = 512
FLUSH_WITHIN_S = 3.0

Action = Callable[[], None]


@contextlib.asynccontextmanager
async def exporting(settings: TelemetrySettings, tally: Tally, gauges: Gauges) -> AsyncGenerator["Exporter"]:
    """Export according to the settings while the block runs; then send what is left, within a short timeout."""
    exporter = Exporter(settings, tally, gauges)
    try:
        yield exporter
    finally:
        await exporter.close()


class Exporter:
    """Exports from its creation until it is closed. Only one per process can export spans."""

    def __init__(
        self, settings: TelemetrySettings, tally: Tally, gauges: Gauges, metrics_every_s: float = METRICS_EVERY_S
    ) -> None:
        self._settings = settings
        self._resource = Resource.create({"service.name": settings.service_name, "service.version": __version__})
        self._registry = CollectorRegistry() if settings.metrics else None
        self._flushing: list[Action] = []
        self._giving_up: list[Action] = []
        readers: list[MetricReader] = []
        if self._registry is not None:
            readers.append(ScrapedReader(tally, self._registry))
        if settings.otlp_endpoint is not None:
            readers.append(self._push(tally, metrics_every_s))
        if readers:
            self._observe(readers, tally, gauges)

    def metrics_text(self) -> bytes:
        """All metrics in Prometheus's text format; empty when metrics are off."""
        return generate_latest(self._registry) if self._registry is not None else b""

    async def metrics_endpoint(self, request: Request) -> Response:
        """Answer GET /metrics."""
        if self._registry is None:
            return PlainTextResponse("metrics are off; telemetry.metrics = true serves them\n", 404)
        headers = {"Content-Type": CONTENT_TYPE_LATEST, "Cache-Control": "no-store"}
        return Response(self.metrics_text(), headers=headers)

    async def close(self, within_s: float = FLUSH_WITHIN_S) -> None:
        """Send what is left. A thread that still waits for the collector is abandoned, and dies with the process."""
        flushing, self._flushing = [_in_thread(flush) for flush in self._flushing], []
        if flushing:
            use_tracer(None)
            _, late = await asyncio.wait(flushing, timeout=within_s)
            for give_up in self._giving_up if late else ():
                give_up()

    def _push(self, tally: Tally, metrics_every_s: float) -> MetricReader:
        from postroom.telemetry.collector import ANSWER_WITHIN_S, MetricsToCollector, SpansToCollector, quiet_libraries

        quiet_libraries()
        spans, metrics = SpansToCollector(self._settings), MetricsToCollector(self._settings)
        self._giving_up = [spans.shutdown, metrics.shutdown]
        self._trace(spans)
        return PushedReader(tally, metrics, metrics_every_s, ANSWER_WITHIN_S)

    def _trace(self, spans: "SpanExporter") -> None:
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

        sampler = ParentBased(TraceIdRatioBased(self._settings.traces_sample_ratio))
        provider = TracerProvider(sampler, self._resource, shutdown_on_exit=False)
        queue = BatchSpanProcessor(spans, MOST_SPANS_WAITING, SPANS_EVERY_S * 1000, MOST_SPANS_AT_ONCE)
        provider.add_span_processor(queue)
        self._flushing.append(provider.shutdown)
        use_tracer(provider.get_tracer(SCOPE, __version__))

    def _observe(self, readers: Sequence[MetricReader], tally: Tally, gauges: Gauges) -> None:
        provider = MeterProvider(readers, self._resource, AlwaysOffExemplarFilter(), shutdown_on_exit=False)
        self._flushing.append(provider.shutdown)
        create_instruments(provider.get_meter(SCOPE, __version__), tally, gauges)


def _in_thread(action: Action) -> "asyncio.Future[None]":
    """Run it in a daemon thread: unlike those of an executor, it does not delay the end of the process."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def run() -> None:
        try:
            action()
        except Exception as error:
            log.warning("telemetry.not_flushed", error=type(error).__name__)
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(_resolve, done)

    threading.Thread(target=run, name="postroom-telemetry-flush", daemon=True).start()
    return done


def _resolve(done: "asyncio.Future[None]") -> None:
    if not done.done():
        done.set_result(None)
