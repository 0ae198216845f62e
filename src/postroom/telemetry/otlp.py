"""Metrics and spans in OTLP's binary form: protocol buffers, written by hand for the few messages that we send.

The numbers of the fields are those of opentelemetry-proto 1.x, which never change. What the SDK can have and we never
have is left out: links, exemplars, lists as values, exponential histograms.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from struct import pack
from typing import TYPE_CHECKING, Any

from opentelemetry.sdk.metrics.export import Histogram, HistogramDataPoint, Metric, MetricsData, NumberDataPoint, Sum

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import Event, ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
# Whether the parent is in another process is known (bit 8), and it is (bit 9).
PARENT_KNOWN, PARENT_REMOTE = 0x100, 0x200


def metrics_request(data: MetricsData) -> bytes:
    """An ExportMetricsServiceRequest."""
    return _many(
        1,
        (
            _resource(each.resource)
            + _many(2, (_scope(scope.scope) + _many(2, map(_metric, scope.metrics)) for scope in each.scope_metrics))
            for each in data.resource_metrics
        ),
    )


def spans_request(spans: Sequence["ReadableSpan"]) -> bytes:
    """An ExportTraceServiceRequest. The spans are those of one tracer, so few groups are made."""
    return _many(
        1,
        (
            _resource(resource) + _bytes(2, _scope(scope) + _many(2, map(_span, group)))
            for (resource, scope), group in groupby(spans, lambda each: (each.resource, each.instrumentation_scope))
        ),
    )


def _resource(resource: "Resource") -> bytes:
    return _bytes(1, _attributes(1, resource.attributes))


def _scope(scope: "InstrumentationScope | None") -> bytes:
    return b"" if scope is None else _bytes(1, _text(1, scope.name) + _text(2, scope.version or ""))


def _span(span: "ReadableSpan") -> bytes:
    own, parent = span.get_span_context(), span.parent
    assert own is not None  # noqa: S101 - a span that was recorded has one
    remote = PARENT_REMOTE if parent is not None and parent.is_remote else 0
    return b"".join(
        (
            _bytes(1, own.trace_id.to_bytes(16, "big")),
            _bytes(2, own.span_id.to_bytes(8, "big")),
            _bytes(4, parent.span_id.to_bytes(8, "big")) if parent is not None else b"",
            _text(5, span.name),
            _varint(6, span.kind.value + 1),
            _fixed64(7, span.start_time or 0),
            _fixed64(8, span.end_time or 0),
            _attributes(9, span.attributes or {}),
            _many(11, map(_event, span.events)),
            _bytes(15, _text(2, span.status.description or "") + _varint(3, span.status.status_code.value)),
            _key(16, FIXED32) + pack("<I", PARENT_KNOWN | remote),
        )
    )


def _event(event: "Event") -> bytes:
    return _fixed64(1, event.timestamp) + _text(2, event.name) + _attributes(3, event.attributes or {})


def _metric(metric: Metric) -> bytes:
    return b"".join(
        (_text(1, metric.name), _text(2, metric.description or ""), _text(3, metric.unit or ""), _data(metric.data))
    )


def _data(data: object) -> bytes:
    match data:
        case Histogram():
            return _bytes(9, _many(1, map(_histogram, data.data_points)) + _varint(2, data.aggregation_temporality))
        case Sum():
            totals = _varint(2, data.aggregation_temporality) + _varint(3, int(data.is_monotonic))
            return _bytes(7, _many(1, map(_number, data.data_points)) + totals)
        case _:
            points: Iterable[NumberDataPoint] = getattr(data, "data_points", ())
            return _bytes(5, _many(1, map(_number, points)))


def _number(point: NumberDataPoint) -> bytes:
    value = point.value
    given = _key(6, FIXED64) + pack("<q", value) if isinstance(value, int) else _double(4, value)
    return _times(point) + given + _attributes(7, point.attributes or {})


def _histogram(point: HistogramDataPoint) -> bytes:
    counts, bounds = point.bucket_counts, point.explicit_bounds
    return b"".join(
        (
            _times(point),
            _fixed64(4, point.count),
            _double(5, point.sum),
            _bytes(6, pack(f"<{len(counts)}Q", *counts)),
            _bytes(7, pack(f"<{len(bounds)}d", *bounds)),
            _attributes(9, point.attributes or {}),
        )
    )


def _times(point: NumberDataPoint | HistogramDataPoint) -> bytes:
    return _fixed64(2, point.start_time_unix_nano or 0) + _fixed64(3, point.time_unix_nano)


def _attributes(number: int, attributes: Mapping[str, Any]) -> bytes:
    return _many(number, (_text(1, name) + _bytes(2, _value(value)) for name, value in attributes.items()))


def _value(value: object) -> bytes:
    match value:
        case bool():
            return _varint(2, int(value))
        case int():
            return _varint(3, value)
        case float():
            return _double(4, value)
        case _:
            return _text(1, str(value))


def _many(number: int, messages: Iterable[bytes]) -> bytes:
    return b"".join([_bytes(number, each) for each in messages])


def _text(number: int, text: str) -> bytes:
    return _bytes(number, text.encode("utf-8", "replace"))


def _bytes(number: int, content: bytes) -> bytes:
    return _key(number, BYTES) + _base128(len(content)) + content


def _varint(number: int, value: int) -> bytes:
    return _key(number, VARINT) + _base128(value & 0xFFFF_FFFF_FFFF_FFFF)


def _fixed64(number: int, value: int) -> bytes:
    return _key(number, FIXED64) + pack("<Q", value)


def _double(number: int, value: float) -> bytes:
    return _key(number, FIXED64) + pack("<d", value)


def _key(number: int, kind: int) -> bytes:
    return _base128(number << 3 | kind)


def _base128(value: int) -> bytes:
    if value < 0x80:
        return value.to_bytes()
    digits = bytearray()
    while value >= 0x80:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    digits.append(value)
    return bytes(digits)
