"""Spans, recorded by a tracer if there is one.

    with span("job classify", job.traceparent, attempt=2):
        ...
        current_traceparent()      # passed on with every request made in here

Without a tracer nothing is recorded, and a given traceparent is passed on unchanged. `exporter.py` sets the tracer. It
is not OpenTelemetry's global one, so that no library can record spans with mail content.

A span has a name from a closed list and few attributes: never an id of a message, an address, or text of mail.
Only the type of an error that leaves a span is recorded, since its text may quote mail.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING
from uuid import UUID

from postroom.core.traceparent import Traceparent, is_traceparent, parse_traceparent

if TYPE_CHECKING:
    from types import TracebackType

    from opentelemetry.trace import Span, Tracer

Value = str | int | float | bool | UUID

_current: ContextVar[str | None] = ContextVar("postroom_traceparent", default=None)
_recording: ContextVar[Span | None] = ContextVar("postroom_span", default=None)
_NOTHING = nullcontext()
_tracer: Tracer | None = None


def use_tracer(tracer: Tracer | None) -> None:
    """Send the spans of this process to the tracer from now on; None for no tracer."""
    global _tracer
    _tracer = tracer


def current_traceparent() -> str | None:
    """The traceparent to pass on, if this is part of a trace."""
    return _current.get()


def span(name: str, parent: str | None = None, **attributes: Value) -> AbstractContextManager[None]:
    """A span for the block: a child of `parent`, else of the current span, else the root of a new trace."""
    if _tracer is not None:
        return _Recorded(_tracer, name, parent, attributes)
    return _Unrecorded(parent) if parent is not None and is_traceparent(parent) else _NOTHING


def add_event(event: str, **attributes: Value) -> None:
    """Add an event to the current span, if one is recorded."""
    open_span = _recording.get()
    if open_span is not None:
        open_span.add_event(event, _plain(attributes))


def _plain(attributes: dict[str, Value]) -> dict[str, str | int | float | bool]:
    return {name: str(each) if isinstance(each, UUID) else each for name, each in attributes.items()}


class _Unrecorded:
    """Records nothing; passes the given traceparent on."""

    __slots__ = ("_parent", "_token")

    def __init__(self, parent: str) -> None:
        self._parent = parent

    def __enter__(self) -> None:
        self._token: Token[str | None] = _current.set(self._parent)

    def __exit__(self, *error: object) -> None:
        _current.reset(self._token)


class _Recorded:
    """A span of the tracer, current while the block runs."""

    __slots__ = ("_attributes", "_name", "_open", "_parent", "_remote", "_span", "_token", "_tracer")

    def __init__(self, tracer: Tracer, name: str, parent: str | None, attributes: dict[str, Value]) -> None:
        self._tracer = tracer
        self._name = name
        given = parse_traceparent(parent)
        self._remote = given is not None
        self._parent = given or parse_traceparent(_current.get())
        self._attributes = attributes

    def __enter__(self) -> None:
        from opentelemetry.context import Context
        from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

        inside = Context()
        if self._parent is not None:
            trace_id, span_id, flags = self._parent
            above = SpanContext(trace_id, span_id, is_remote=self._remote, trace_flags=TraceFlags(flags))
            inside = set_span_in_context(NonRecordingSpan(above), inside)
        self._span: Span = self._tracer.start_span(self._name, inside, attributes=_plain(self._attributes))
        own = self._span.get_span_context()
        self._token = _current.set(str(Traceparent(own.trace_id, own.span_id, int(own.trace_flags))))
        self._open = _recording.set(self._span)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        from opentelemetry.trace import Status, StatusCode

        _recording.reset(self._open)
        _current.reset(self._token)
        if kind is not None:
            self._span.set_attribute("error.type", kind.__name__)
            self._span.set_status(Status(StatusCode.ERROR))
        self._span.end()
