"""Converts an entry of a Redis stream to an ingest.v1 envelope. Pure: the same entry always gives the same envelope.

Producers may use any fields; the usual names are understood, and all fields are kept in `payload.raw`. A producer that
knows ingest.v1 puts a whole envelope into the field `envelope` or `ingest`.

An agent gateway writes messages from people to the same stream as everything else, marked by the field `source`:
`telegram:<chat>` is a person on that channel, `callback_query` a button that a person pressed. Such an entry gets that
channel and that kind, so that it does not wait behind heartbeats. For other entries, `metadata` may name the kind.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, NamedTuple, cast

import orjson
from pydantic import TypeAdapter, ValidationError

from postroom.core.errors import BadInput
from postroom.core.queue.envelope import LONGEST_KEY, EventKind, Name
from postroom.core.queue.queues import PEOPLE
from postroom.core.strict import exact_json
from postroom.core.traceparent import parse_traceparent

CHANNEL = "redis"
BUTTON = "callback_query"
# The channel of a button if the source does not name one.
BUTTONS_OF = "telegram"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

KIND = ("event", "kind", "type")
KIND_IN_METADATA = ("event", "eventType", "type", "kind")
THREAD = ("thread", "session")
SENDER = ("sender", "source", "from")
TEXT = ("text", "message", "body", "prompt", "payload")
WHOLE = ("envelope", "ingest")

_A_NAME: TypeAdapter[str] = TypeAdapter(Name)
_A_KIND: TypeAdapter[str] = TypeAdapter(EventKind)

Fields = tuple[tuple[bytes, bytes], ...]


class Entry(NamedTuple):
    """One entry as Redis delivers it. `fields` is None if it was deleted from the stream after delivery."""

    id: str
    fields: Fields | None


def place(entry_id: str) -> tuple[int, int]:
    """The position of an entry in its stream, for comparison."""
    milliseconds, _, number = entry_id.partition("-")
    return int(milliseconds), int(number or 0)


def to_envelope(entry_id: str, fields: Fields, *, stream: str, identity: str) -> dict[str, Any]:
    """Convert an entry. Raises BadInput if that is impossible."""
    texts = texts_of(fields)
    whole = _whole_envelope(texts)
    if whole is not None:
        return _of_this_source(whole, identity)
    raw = {name: _decode_values(values) for name, values in texts.items()}
    channel = _channel(texts)
    return {
        "schema_version": "ingest.v1",
        "source": {"channel": channel, "provider": channel, "endpoint_identity": identity},
        "event": {
            "external_event_id": _event_id(entry_id, stream, identity),
            "observed_at": observed_at(entry_id).isoformat(),
            "external_thread_id": _name(texts, THREAD, _A_NAME),
            "kind": _kind(texts, raw.get("metadata")),
        },
        "sender": {"identity": _name(texts, SENDER, _A_NAME) or stream},
        "payload": {"raw": raw, "normalized_text": _first(texts, TEXT) or orjson.dumps(raw).decode()},
        "control": {"trace_context": _trace_context(texts)},
    }


def _channel(texts: Mapping[str, list[str]]) -> str:
    """The channel of the person in `source`; else that of the stream."""
    source = _first(texts, ("source",)) or ""
    if source == BUTTON:
        return BUTTONS_OF
    service = re.split("[:.]", source, maxsplit=1)[0]
    return service if service in PEOPLE else CHANNEL


def _kind(texts: Mapping[str, list[str]], metadata: object) -> str | None:
    if BUTTON in (source := texts.get("source", ())):
        return BUTTON
    found = _name(texts, KIND, _A_KIND)
    if found is not None or not source or not isinstance(metadata, dict):
        return found
    fields = cast("dict[str, Any]", metadata)
    named = (fields.get(name) for name in KIND_IN_METADATA)
    return next((each for each in named if isinstance(each, str) and _fits(_A_KIND, each)), None)


def _event_id(entry_id: str, stream: str, identity: str) -> str:
    """The event id, with the stream's name unless the identity has it: two streams may share an identity and ids."""
    event_id = entry_id if identity == f"{CHANNEL}:{stream}" else f"{stream}:{entry_id}"
    return event_id if len(event_id) <= LONGEST_KEY else f"sha256:{sha256(event_id.encode()).hexdigest()}"


def observed_at(entry_id: str) -> datetime:
    """When Redis received the entry: the first half of its id is a time in milliseconds."""
    try:
        return EPOCH + timedelta(milliseconds=int(entry_id.partition("-")[0]))
    except (ValueError, OverflowError):
        remedy = "let Redis make the ids (XADD with *), or use milliseconds of Unix time"
        raise BadInput("id", f"{entry_id!r} does not begin with a time", remedy) from None


def texts_of(fields: Fields) -> dict[str, list[str]]:
    """The fields as text. Redis allows repeated fields and any bytes; invalid UTF-8 is written as \\xNN."""
    texts: dict[str, list[str]] = {}
    for name, value in fields:
        texts.setdefault(_text(name), []).append(_text(value))
    return texts


def _text(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")


def _decode_values(values: list[str]) -> object:
    decoded = [_value(text) for text in values]
    return decoded[0] if len(decoded) == 1 else decoded


def _value(text: str) -> object:
    """The JSON object in the text; else the text itself, also if numbers in the object would be rounded."""
    try:
        found = _object(text)
    except BadInput:
        return text
    return text if found is None else found


def _object(text: str) -> dict[str, Any] | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        return cast("dict[str, Any]", exact_json(text.encode("utf-8", "surrogatepass")))
    except orjson.JSONDecodeError:
        return None


def _first(texts: Mapping[str, list[str]], names: tuple[str, ...]) -> str | None:
    """The first of these fields that is not empty."""
    return next((text for name in names for text in texts.get(name, ()) if text.strip()), None)


def _name(texts: Mapping[str, list[str]], names: tuple[str, ...], form: TypeAdapter[str]) -> str | None:
    """The first of these fields that is a valid name; an invalid one (empty, too long) is only kept in `raw`."""
    return next((text for name in names for text in texts.get(name, ()) if _fits(form, text)), None)


def _fits(form: TypeAdapter[str], text: str) -> bool:
    try:
        form.validate_python(text)
    except ValidationError:
        return False
    return True


def _trace_context(texts: Mapping[str, list[str]]) -> dict[str, str] | None:
    parent = _first(texts, ("traceparent",))
    if parent is None or parse_traceparent(parent) is None:
        return None
    state = _first(texts, ("tracestate",))
    return {"traceparent": parent} | ({"tracestate": state} if state is not None else {})


def _whole_envelope(texts: Mapping[str, list[str]]) -> dict[str, Any] | None:
    found = (_object(text) for name in WHOLE for text in texts.get(name, ()))
    return next((each for each in found if each is not None and "schema_version" in each), None)


def _of_this_source(envelope: dict[str, Any], identity: str) -> dict[str, Any]:
    source = envelope.get("source")
    named = cast("dict[str, Any]", source).get("endpoint_identity") if isinstance(source, dict) else None
    if named != identity:
        problem = f"the envelope is of {str(named)[:100]!r}, but this connector is for {identity!r}"
        raise BadInput("source.endpoint_identity", problem, "write it to the stream of its own source")
    return envelope
