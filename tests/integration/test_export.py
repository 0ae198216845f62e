"""Metrics and traces arrive at their collectors with the right names and values, and failures there do no harm."""

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from time import monotonic
from typing import Any

import httpx2
import pytest
from opentelemetry import trace
from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_CUMULATIVE
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from prometheus_client import REGISTRY
from prometheus_client.metrics_core import Metric as ProcessGroup
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette
from starlette.routing import Route
from structlog.testing import capture_logs

from postroom import __version__
from postroom.core.metrics import (
    ACCEPT_LATENCY,
    ACCESS_REFUSED,
    DEQUEUE_BY_TIER,
    METRICS,
    PROCESS_LATENCY,
    QUEUE_DEPTH,
)
from postroom.core.tally import Gauges, Tally
from postroom.core.traceparent import parse_traceparent
from postroom.settings.sections import TelemetrySettings
from postroom.telemetry.collector import Collector, RateLimitedFilter, Reachability
from postroom.telemetry.exporter import MOST_SPANS_AT_ONCE, MOST_SPANS_WAITING, Exporter, exporting
from postroom.telemetry.tracing import add_event, current_traceparent, span
from support.otlp import OtlpCollector, attributes, running_collector
from support.patience import PATIENCE_S

GIVEN = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
CANARY = "Kanarienvogel17"
WAITING = ("email", "default", "waiting")


def settings(**given: Any) -> TelemetrySettings:
    return TelemetrySettings.model_validate(given)


@pytest.fixture
def collector() -> Iterator[OtlpCollector]:
    with running_collector() as running:
        yield running


@asynccontextmanager
async def scraped(tally: Tally, gauges: Gauges | None = None) -> AsyncGenerator[Exporter]:
    async with exporting(settings(), tally, gauges or Gauges()) as exporter:
        yield exporter


def families(exporter: Exporter) -> dict[str, ProcessGroup]:
    """What Prometheus would read, by name."""
    return {family.name: family for family in text_string_to_metric_families(exporter.metrics_text().decode())}


def samples(exporter: Exporter, name: str) -> dict[tuple[str, ...], float]:
    """The values of one series by those of its labels, in the order of the labels' names."""
    return {
        tuple(value for _, value in sorted(sample.labels.items())): sample.value
        for family in families(exporter).values()
        for sample in family.samples
        if sample.name == name
    }


def use_every_metric(tally: Tally, gauges: Gauges) -> None:
    for metric in METRICS:
        match metric.kind:
            case "counter":
                tally.count(metric, *metric.attributes, by=7)
            case "gauge":
                gauges.show(metric, {metric.attributes: 7})
            case "histogram":
                tally.observe(metric, 7.0, *metric.attributes)


async def test_prometheus_reads_a_counter():
    tally = Tally()
    async with scraped(tally) as exporter:
        tally.count(DEQUEUE_BY_TIER, "default", "email", "false", by=41)
        tally.count(DEQUEUE_BY_TIER, "default", "email", "true")
        name = "butlers_switchboard_queue_dequeue_by_tier_total"
        assert samples(exporter, name) == {("default", "email", "false"): 41, ("default", "email", "true"): 1}
        tally.count(DEQUEUE_BY_TIER, "default", "email", "true")
        assert samples(exporter, name) == {("default", "email", "false"): 41, ("default", "email", "true"): 2}


async def test_prometheus_reads_a_gauge_as_it_is_now():
    gauges = Gauges()
    async with scraped(Tally(), gauges) as exporter:
        gauges.show(QUEUE_DEPTH, {WAITING: 3, ("email", "default", "leased"): 1})
        name = "butlers_switchboard_queue_depth"
        assert samples(exporter, name) == {("default", "email", "waiting"): 3, ("default", "email", "leased"): 1}
        gauges.show(QUEUE_DEPTH, {WAITING: 0})
        assert samples(exporter, name) == {("default", "email", "waiting"): 0}


async def test_prometheus_reads_a_histogram_with_cumulative_buckets():
    tally = Tally()
    values = [0.0004, 0.001, 0.004, 0.004, 0.3, 99.0]
    for value in values:
        tally.observe(ACCEPT_LATENCY, value, "email")
    tally.observe(ACCEPT_LATENCY, 1.0, "gateway")
    name = "butlers_switchboard_ingress_accept_latency_seconds"
    async with scraped(tally) as exporter:
        for _ in range(2):  # looking changes nothing
            found = samples(exporter, f"{name}_bucket")
            for bound in ACCEPT_LATENCY.buckets:
                assert found[str(bound), "email"] == sum(value <= bound for value in values)
            assert found["+Inf", "email"] == samples(exporter, f"{name}_count")["email",] == len(values)
            assert samples(exporter, f"{name}_sum")["email",] == pytest.approx(sum(values))
            assert samples(exporter, f"{name}_count")["gateway",] == 1


async def test_every_metric_has_the_name_and_the_labels_that_are_documented():
    tally, gauges = Tally(), Gauges()
    use_every_metric(tally, gauges)
    async with scraped(tally, gauges) as exporter:
        found = families(exporter)
        for metric in METRICS:
            family = found[metric.prometheus_name.removesuffix("_total")]
            assert (family.type, family.documentation) == (metric.kind, metric.description)
            assert {label for sample in family.samples for label in sample.labels} - {"le"} == set(metric.attributes)
        assert set(found) - {"target_info"} == {metric.prometheus_name.removesuffix("_total") for metric in METRICS}


async def test_what_is_known_beforehand_is_zero_from_the_start():
    async with scraped(Tally()) as exporter:
        found = samples(exporter, ACCESS_REFUSED.prometheus_name)
        assert found == dict.fromkeys(ACCESS_REFUSED.known, 0)


async def test_two_exporters_share_nothing_and_the_global_registry_has_none_of_it():
    one, other = Tally(), Tally()
    one.count(ACCESS_REFUSED, "role")
    async with scraped(one) as first, scraped(other) as second:
        assert samples(first, ACCESS_REFUSED.prometheus_name)["role",] == 1
        assert samples(second, ACCESS_REFUSED.prometheus_name)["role",] == 0
        assert not [family for family in REGISTRY.collect() if family.name.startswith("butlers")]


async def test_the_endpoint_answers_as_prometheus_expects():
    async with scraped(Tally()) as exporter:
        app = Starlette(routes=[Route("/metrics", exporter.metrics_endpoint)])
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://test") as http:
            answer = await http.get("/metrics")
        assert (answer.status_code, answer.content) == (200, exporter.metrics_text())
        assert answer.headers["content-type"].startswith("text/plain; version=")


async def test_the_endpoint_is_not_there_when_metrics_are_off():
    async with exporting(settings(metrics=False), Tally(), Gauges()) as exporter:
        app = Starlette(routes=[Route("/metrics", exporter.metrics_endpoint)])
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://test") as http:
            assert (await http.get("/metrics")).status_code == 404
        assert exporter.metrics_text() == b""


async def test_a_collector_gets_the_metrics_with_their_names_and_values(collector: OtlpCollector):
    tally, gauges = Tally(), Gauges()
    tally.count(DEQUEUE_BY_TIER, "default", "email", "true", by=5)
    tally.observe(PROCESS_LATENCY, 40.0, "email", "default")
    tally.observe(PROCESS_LATENCY, 7_000_000.0, "email", "default")
    gauges.show(QUEUE_DEPTH, {WAITING: 3})
    async with exporting(settings(otlp_endpoint=collector.address), tally, gauges):
        pass
    found = collector.next_metrics()
    counter = found["butlers.switchboard.queue.dequeue_by_tier"]
    (point,) = counter.sum.data_points
    assert (point.as_int, counter.sum.is_monotonic, counter.unit) == (5, True, "{message}")
    assert attributes(point) == {"policy_tier": "default", "queue_name": "email", "starvation_override": "true"}
    (depth,) = found["butlers.switchboard.queue_depth"].gauge.data_points
    assert (depth.as_double or depth.as_int, attributes(depth)["state"]) == (3, "waiting")
    histogram = found["butlers.buffer.process_latency_ms"].histogram
    (latency,) = histogram.data_points
    assert histogram.aggregation_temporality == AGGREGATION_TEMPORALITY_CUMULATIVE
    assert (latency.count, latency.sum) == (2, 7_000_040.0)
    assert tuple(latency.explicit_bounds) == PROCESS_LATENCY.buckets
    assert [number for number, count in enumerate(latency.bucket_counts) if count] == [5, len(PROCESS_LATENCY.buckets)]
    assert not latency.HasField("min")
    assert attributes(latency) == {"queue_name": "email", "policy_tier": "default"}


async def test_a_collector_gets_every_metric_there_is(collector: OtlpCollector):
    tally, gauges = Tally(), Gauges()
    use_every_metric(tally, gauges)
    async with exporting(settings(otlp_endpoint=collector.address, metrics=False), tally, gauges):
        pass
    found = collector.next_metrics()
    assert {name: (each.unit, each.description) for name, each in found.items()} == {
        metric.name: (metric.unit, metric.description) for metric in METRICS
    }


async def test_a_collector_gets_metrics_again_and_again(collector: OtlpCollector):
    tally = Tally()
    exporter = Exporter(settings(otlp_endpoint=collector.address), tally, Gauges(), metrics_every_s=0.02)
    for round in range(1, 4):
        tally.count(ACCESS_REFUSED, "role")

        def refused() -> int:
            points = collector.next_metrics()[ACCESS_REFUSED.name].sum.data_points
            return next(point.as_int for point in points if attributes(point) == {"reason": "role"})

        async with asyncio.timeout(PATIENCE_S):
            while await asyncio.to_thread(refused) != round:
                pass
    await exporter.close()


async def test_a_collector_gets_the_spans_and_whose_they_are(collector: OtlpCollector):
    asked = settings(
        otlp_endpoint=f"{collector.address}/",
        otlp_headers=f"authorization=Bearer%20{CANARY},x-a=b",
        service_name="mail",
    )
    async with exporting(asked, Tally(), Gauges()):
        with span("job classify", GIVEN, attempt=1), span("gmail modify"):
            pass
    request = collector.traces.get(timeout=PATIENCE_S)
    (resource,) = request.resource_spans
    (scope,) = resource.scope_spans
    inner, outer = scope.spans
    assert (inner.name, outer.name) == ("gmail modify", "job classify")
    assert (outer.trace_id.hex(), outer.parent_span_id.hex()) == tuple(GIVEN.split("-")[1:3])
    assert (inner.trace_id, inner.parent_span_id) == (outer.trace_id, outer.span_id)
    assert attributes(outer) == {"attempt": 1}
    assert outer.end_time_unix_nano >= outer.start_time_unix_nano > 0
    known = attributes(resource.resource)
    assert (known["service.name"], known["service.version"]) == ("mail", __version__)
    assert collector.headers[0]["authorization"] == f"Bearer {CANARY}"
    assert collector.headers[0]["x-a"] == "b"


async def test_a_collector_gets_all_that_a_span_says(collector: OtlpCollector):
    long = "x" * 300
    async with exporting(settings(otlp_endpoint=collector.address), Tally(), Gauges()):
        with contextlib.suppress(ValueError), span("fails", GIVEN, count=-5, share=0.5, known=True, text=long):
            add_event("seen", number=2**40)
            raise ValueError(CANARY)
        with span("begun here"):
            pass
    failed, begun = collector.spans()
    assert attributes(failed) == {"count": -5, "share": 0.5, "known": True, "text": long, "error.type": "ValueError"}
    assert (failed.kind, failed.status.code, failed.flags) == (Span.SPAN_KIND_INTERNAL, Status.STATUS_CODE_ERROR, 0x300)
    assert [(event.name, attributes(event)) for event in failed.events] == [("seen", {"number": 2**40})]
    assert failed.start_time_unix_nano <= failed.events[0].time_unix_nano <= failed.end_time_unix_nano
    assert (begun.parent_span_id, begun.status.code, begun.flags) == (b"", Status.STATUS_CODE_UNSET, 0x100)


async def test_a_collector_that_is_busy_is_asked_again(collector: OtlpCollector, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("postroom.telemetry.collector.FIRST_PAUSE_S", 0.01)
    collector.status = 503
    exporter = Exporter(settings(otlp_endpoint=collector.address, metrics=False), Tally(), Gauges())
    with span("kept"):
        pass
    closing = asyncio.create_task(exporter.close(within_s=PATIENCE_S))
    assert await asyncio.to_thread(collector.asked.wait, PATIENCE_S)
    collector.status = 200
    await closing
    assert [each.name for each in collector.spans()] == ["kept"]


def test_an_answer_that_never_ends_is_left(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("postroom.telemetry.collector.ANSWER_WITHIN_S", 0.3)
    over = threading.Event()

    def drip(listening: socket.socket) -> None:
        taken, _ = listening.accept()
        with taken, contextlib.suppress(OSError):
            taken.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            while not over.wait(0.01):
                taken.sendall(b".")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        dripping = threading.Thread(target=drip, args=(listening,))
        dripping.start()
        collector = Collector(settings(otlp_endpoint=f"http://127.0.0.1:{listening.getsockname()[1]}"), "traces")
        try:
            assert collector.send(b"spans")
            assert not over.is_set()
        finally:
            over.set()
            dripping.join()
        collector.end()
        assert not collector.send(b"too late")


async def test_only_a_share_of_what_begins_here_is_traced_but_all_that_others_asked_for(collector: OtlpCollector):
    async with exporting(settings(otlp_endpoint=collector.address, traces_sample_ratio=0), Tally(), Gauges()):
        with span("begun here"):
            inside = parse_traceparent(current_traceparent())
            assert inside is not None
            assert inside.flags & 1 == 0
        with span("asked for", GIVEN):
            pass
    assert [each.name for each in collector.spans()] == ["asked for"]


async def test_the_tracer_is_ours_alone_and_gone_afterwards(collector: OtlpCollector):
    async with exporting(settings(otlp_endpoint=collector.address), Tally(), Gauges()):
        with trace.get_tracer("some library").start_as_current_span("tells of mail"), span("ours"):
            pass
    assert [each.name for each in collector.spans()] == ["ours"]
    with span("later"):
        assert current_traceparent() is None


@contextmanager
def silent_address() -> Generator[str]:
    """An address that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def closed_address() -> str:
    """An address that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return f"http://127.0.0.1:{listening.getsockname()[1]}"


async def test_a_collector_that_never_answers_delays_the_end_by_a_moment_only(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("postroom.telemetry.collector.ANSWER_WITHIN_S", PATIENCE_S)
    with silent_address() as address:
        exporter = Exporter(settings(otlp_endpoint=address), Tally(), Gauges())
        with span("lost"):
            pass
        began = monotonic()
        await exporter.close(within_s=0.2)
        assert monotonic() - began < PATIENCE_S, "it waited as long as for an answer"
        await exporter.close()  # once is enough


async def test_a_collector_that_is_away_is_reported_once_and_without_its_secrets(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("postroom.telemetry.collector.ANSWER_WITHIN_S", 0.5)
    caplog.set_level(logging.DEBUG)
    headers, heard = f"authorization={CANARY}", threading.Event()

    def hear(_logger: object, _method: str, event: Any) -> Any:
        heard.set()
        return event

    with capture_logs([hear]) as told:
        exporter = Exporter(
            settings(otlp_endpoint=closed_address(), otlp_headers=headers), Tally(), Gauges(), metrics_every_s=0.01
        )
        for _ in range(3000):
            with span("lost"):
                pass
        assert await asyncio.to_thread(heard.wait, 10)
        await exporter.close(within_s=0.2)
    assert {(line["event"], line["signal"]) for line in told} <= {
        ("telemetry.collector_away", "metrics"),
        ("telemetry.collector_away", "traces"),
    }
    assert len(told) <= 2
    loud = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(loud) <= 1, loud  # the queue of spans is full, and says so
    assert CANARY not in caplog.text + str(told)


async def test_spans_wait_in_a_bounded_queue(collector: OtlpCollector):
    collector.answering.clear()
    exporter = Exporter(settings(otlp_endpoint=collector.address, metrics=False), Tally(), Gauges())
    for _ in range(MOST_SPANS_AT_ONCE):
        with span("first"):
            pass
    await asyncio.to_thread(collector.asked.wait, 10)
    for _ in range(4 * MOST_SPANS_WAITING):
        with span("later"):
            pass
    # A request that is not answered in time is given up, and the next one makes room for as many spans as it carries;
    # one may be on its way that the collector has not seen.
    collector.answering.set()
    sent_meanwhile = collector.requests * MOST_SPANS_AT_ONCE
    await exporter.close(within_s=10)
    names = [each.name for each in collector.spans()]
    assert names.count("later") <= MOST_SPANS_WAITING + sent_meanwhile
    assert len(names) >= MOST_SPANS_WAITING


def test_a_collector_that_comes_and_goes_is_told_of_once_a_minute_at_most():
    now = [0.0]
    reachability = Reachability("metrics", lambda: now[0])
    with capture_logs() as told:
        reachability.note(True)
        for second in range(600):
            now[0] = float(second)
            reachability.note(second % 2 == 0)
    assert 1 < len(told) <= 10
    assert [line["event"] for line in told[:2]] == ["telemetry.collector_away", "telemetry.collector_back"]


async def test_a_queue_that_stays_full_is_told_of_every_ten_minutes(collector: OtlpCollector):
    now = [0.0]
    seldom = RateLimitedFilter(lambda: now[0])
    record = logging.LogRecord("queue", logging.WARNING, "", 0, "Queue full, dropping Span.", None, None)
    passed = 0
    for now[0] in range(3600):
        passed += seldom.filter(record)
    assert passed == 6
    await Exporter(settings(otlp_endpoint=collector.address), Tally(), Gauges()).close()
    assert any(
        isinstance(each, RateLimitedFilter) for each in logging.getLogger("opentelemetry.sdk._shared_internal").filters
    )
