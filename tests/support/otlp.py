"""An OTLP/HTTP collector on a loopback socket, which can delay or refuse on request."""

import contextlib
import gzip
import queue
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from support.patience import PATIENCE_S


class OtlpCollector:
    """What came in, decoded."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.status = 200
        self.answering = threading.Event()
        self.answering.set()
        self.asked = threading.Event()
        self.requests = 0
        self.metrics: queue.Queue[ExportMetricsServiceRequest] = queue.Queue()
        self.traces: queue.Queue[ExportTraceServiceRequest] = queue.Queue()
        self.headers: list[dict[str, str]] = []

    def receive(self, path: str, headers: dict[str, str], body: bytes) -> int:
        self.requests += 1
        self.asked.set()
        self.answering.wait(PATIENCE_S)
        if self.status != 200:
            return self.status
        self.headers.append(headers)
        match path:
            case "/v1/metrics":
                self.metrics.put(ExportMetricsServiceRequest.FromString(body))
            case "/v1/traces":
                self.traces.put(ExportTraceServiceRequest.FromString(body))
            case _:
                return 404
        return 200

    def next_metrics(self) -> dict[str, Metric]:
        """The metrics of the next request, by name."""
        request = self.metrics.get(timeout=PATIENCE_S)
        return {
            metric.name: metric
            for resource in request.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }

    def spans(self) -> list[Span]:
        """Every span that has come in and was not asked for yet."""
        found: list[Span] = []
        with contextlib.suppress(queue.Empty):
            while True:
                request = self.traces.get_nowait()
                found += [s for r in request.resource_spans for scope in r.scope_spans for s in scope.spans]
        return found


@contextlib.contextmanager
def running_collector() -> Generator[OtlpCollector]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.headers["Content-Encoding"] == "gzip"
            status = collector.receive(self.path, dict(self.headers), gzip.decompress(body))
            with contextlib.suppress(ConnectionError):
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing on the test's stderr."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

    with Server(("127.0.0.1", 0), Handler) as server:
        collector = OtlpCollector(f"http://127.0.0.1:{server.server_port}")
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        serving.start()
        try:
            yield collector
        finally:
            collector.answering.set()
            server.shutdown()
            serving.join()


def attributes(of: Any) -> dict[str, Any]:
    """The attributes of anything in OTLP that has some."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in of.attributes}
