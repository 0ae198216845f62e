"""When two events are the same: a hash over all of their content.

Sources repeat themselves: "push changes" three times, each time under a new id. Such a repetition is recognised by its
whole content: source, thread, kind, sender, text, `payload.raw`, metadata and attachments. An event that differs in any
of these is a different event.

Chat services number and date each delivery inside `raw`. Those few fields are ignored, by their exact path and only for
plain text messages and button presses. Everything else in `raw` counts, including a field of the same name elsewhere,
such as the id of the message being answered. With attachments, all fields count: two photos under one caption may
differ in nothing but their ids.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import orjson

from postroom.core.queue.envelope import BETWEEN, Envelope

Path = tuple[str, ...]
ANY = "*"
PLAIN = ("", "message")
BUTTON = "callback_query"

_MESSAGES: Mapping[str, tuple[str, ...]] = {
    "telegram": ("update_id", "message_id", "date", "message.message_id", "message.date"),
    "slack": (
        "event_id", "event_time", "event_context", "ts", "event_ts", "client_msg_id", "blocks.*.block_id", "event.ts",
        "event.event_ts", "event.client_msg_id", "event.blocks.*.block_id",
    ),
    "discord": ("id", "timestamp", "nonce", "s", "d.id", "d.timestamp", "d.nonce"),
}  # fmt: skip
_BUTTONS: Mapping[str, tuple[str, ...]] = {
    "telegram": ("update_id", "id", "callback_query.id"),
    "slack": ("trigger_id", "response_url", "actions.*.action_ts"),
    "discord": ("id", "token", "s", "d.id", "d.token"),
}
# The gateway's own entries in a Redis stream hold the time of writing and the id of the chat message.
_GATEWAY_ENTRY = ("source", "prompt", "timestamp")
_GATEWAY_FIELDS: Mapping[str, tuple[str, ...]] = {
    "redis": ("timestamp",),
    "telegram": ("timestamp", "metadata.telegramMessageId", "metadata.messageId"),
    "slack": ("timestamp", "metadata.messageId"),
    "discord": ("timestamp", "metadata.messageId"),
}


def content_hash(envelope: Envelope, ignored: Sequence[str] = ()) -> str | None:
    """Equal for the same content from the same sender at the same source; None when the event has no text.

    `ignored` are further paths in `raw` to leave out, from the settings of the queue.
    """
    payload = envelope.payload
    words = " ".join(payload.normalized_text.split())
    if not words:
        return None
    source, event = envelope.source, envelope.event
    raw: Any = payload.raw
    for path in (*_per_delivery(envelope), *ignored):
        raw = _without(raw, tuple(path.split(".")))
    metadata = None if payload.metadata is None else payload.metadata.model_dump(mode="json")
    attachments = [each.model_dump() for each in payload.attachments]
    parts = (
        source.channel, source.provider, source.endpoint_identity, event.external_thread_id or "", event.kind or "",
        envelope.sender.identity, words, _canonical([raw, metadata, attachments]),
    )  # fmt: skip
    return hashlib.sha256(BETWEEN.join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _per_delivery(envelope: Envelope) -> Iterable[str]:
    """The paths in `raw` that differ with each delivery of the same content."""
    channel, kind, raw = envelope.source.channel, envelope.event.kind or "", envelope.payload.raw
    if raw is None or envelope.payload.attachments:
        return
    if kind == BUTTON:
        yield from _BUTTONS.get(channel, ())
    elif kind in PLAIN:
        yield from _MESSAGES.get(channel, ())
    if all(name in raw for name in _GATEWAY_ENTRY):
        yield from _GATEWAY_FIELDS.get(channel, ()) if kind in PLAIN else ("timestamp",)


def _without(value: Any, path: Path) -> Any:
    """A copy without the value at the path; the value itself when there is none."""
    first, rest = path[0], path[1:]
    if isinstance(value, list) and first == ANY:
        items = cast("list[Any]", value)
        return [_without(each, rest) for each in items] if rest else []
    if not isinstance(value, dict) or first not in value:
        return cast("Any", value)
    fields = cast("dict[str, Any]", value)
    if not rest:
        return {name: each for name, each in fields.items() if name != first}
    return {**fields, first: _without(fields[first], rest)}


def _canonical(value: Any) -> str:
    """The same text for equal JSON, in any order of keys."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
