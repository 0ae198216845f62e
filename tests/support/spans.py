"""Spans that a test can look at."""

import contextlib
from collections.abc import Generator, Sequence

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from postroom.core.traceparent import Traceparent
from postroom.telemetry.tracing import use_tracer


class RecordedSpans:
    """What was recorded so far, in the order in which it ended."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self._exporter = exporter

    @property
    def all(self) -> Sequence[ReadableSpan]:
        return self._exporter.get_finished_spans()

    @property
    def names(self) -> list[str]:
        return [span.name for span in self.all]

    def __getitem__(self, name: str) -> ReadableSpan:
        (found,) = [span for span in self.all if span.name == name]
        return found


@contextlib.contextmanager
def recorded_spans() -> Generator[RecordedSpans]:
    """Records every span of the block."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    use_tracer(provider.get_tracer("test"))
    try:
        yield RecordedSpans(exporter)
    finally:
        use_tracer(None)


def place(span: ReadableSpan) -> str:
    """The traceparent of what is done inside this span."""
    context = span.context
    assert context is not None
    return str(Traceparent(context.trace_id, context.span_id, int(context.trace_flags)))


def above(span: ReadableSpan) -> str | None:
    """The traceparent of what this span is a part of."""
    parent = span.parent
    return None if parent is None else str(Traceparent(parent.trace_id, parent.span_id, int(parent.trace_flags)))
