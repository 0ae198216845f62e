"""ingest.v1: what is accepted, and how errors name what is not."""

from copy import deepcopy
from typing import Any

import pytest

from postroom.core.errors import BadInput
from postroom.core.queue.envelope import DEEPEST_PAYLOAD, LARGEST_ENVELOPE, envelope_text, parse_envelope

GOOD: dict[str, Any] = {
    "schema_version": "ingest.v1",
    "source": {"channel": "email", "provider": "gmail", "endpoint_identity": "gmail:user:a@b.example"},
    "event": {"external_event_id": "18f", "observed_at": "2026-11-15T08:00:00+01:00"},
    "sender": {"identity": "c@d.example"},
    "payload": {"raw": {}, "normalized_text": "hello"},
}


def changed(path: str, value: object) -> dict[str, Any]:
    envelope = deepcopy(GOOD)
    place: dict[str, Any] = envelope
    *above, last = path.split(".")
    for part in above:
        place = place.setdefault(part, {})
    place[last] = value
    return envelope


def test_a_good_envelope_has_the_defaults() -> None:
    envelope = parse_envelope(GOOD)
    assert envelope.control.policy_tier == "default"
    assert envelope.control.ingestion_tier == "full"


def test_an_event_is_known_by_its_source_and_id_whatever_key_the_producer_gave_it() -> None:
    given = parse_envelope(changed("control", {"idempotency_key": "mine"}))
    assert given.event_key == parse_envelope(GOOD).event_key
    assert given.event_key != parse_envelope(changed("event.external_event_id", "18e")).event_key


@pytest.mark.parametrize(
    ("path", "value", "field", "remedy"),
    [
        ("schema_version", "ingest.v2", "schema_version", "ingest.v1"),
        ("source.chanel", "email", "source.chanel", "did you mean 'channel'"),
        ("extra", 1, "extra", "leave it out"),
        ("event.observed_at", "2026-11-15T08:00:00", "event.observed_at", "time zone"),
        ("sender.identity", "", "sender.identity", "at least 1"),
        ("source.provider", "slack", "source", "gmail or imap"),
        ("source.channel", "fax", "source", "email"),
        ("control.policy_tier", "history", "control.policy_tier", "high_priority"),
        ("control.ingestion_tier", "metadata", "envelope", "null for 'metadata'"),
        ("payload.raw", None, "envelope", "object for ingestion_tier 'full'"),
        ("payload.metadata", {"labels": []}, "envelope", "payload.raw"),
        ("payload.metadata", {"header": []}, "payload.metadata.header", "did you mean 'headers'"),
        ("payload.metadata", {"headers": [["Subject"]]}, "payload.metadata.headers.0.1", "Field required"),
        ("event.external_event_id", "a\0b", "event.external_event_id", "not allowed"),
        ("event.kind", "x" * 129, "event.kind", "128"),
        ("event.observed_at", 1763193600, "event.observed_at", "2026-11-15T08:00:00Z"),
        ("event.observed_at", "0001-01-01T00:00:00+14:00", "event.observed_at", "calendar"),
        ("event.observed_at", True, "event.observed_at", "2026-11-15T08:00:00Z"),
        ("event.observed_at", "yesterday", "event.observed_at", "datetime"),
        ("event.kind", "", "event.kind", "at least 1"),
        ("event.kind", "two words", "event.kind", "not allowed"),
        ("event.external_event_id", "x" * 513, "event.external_event_id", "at most 512"),
        ("event.external_thread_id", " ", "event.external_thread_id", "not allowed"),
        ("sender.identity", " \t", "sender.identity", "not allowed"),
        ("source.endpoint_identity", "", "source.endpoint_identity", "at least 1"),
        ("control.idempotency_key", "", "control.idempotency_key", "at least 1"),
        ("control.idempotency_key", "k" * 513, "control.idempotency_key", "at most 512"),
        ("control.ingestion_tier", "skip", "control.ingestion_tier", "'full' or 'metadata'"),
        ("control.policy_tier", "urgent", "control.policy_tier", "high_priority"),
        ("control.trace_context", {"traceparent": 1}, "control.trace_context.traceparent", "string"),
        ("control.priority", 1, "control.priority", "leave it out"),
        ("payload.normalised_text", "x", "payload.normalised_text", "did you mean 'normalized_text'"),
        ("payload.normalized_text", None, "payload.normalized_text", "string"),
        ("payload.raw", [], "payload.raw", "dictionary"),
        ("payload.raw", {"a": [float("nan")]}, "payload.raw", "JSON"),
        ("payload.raw", {"a": float("-inf")}, "payload.raw", "JSON"),
        ("payload.attachments", [{"size": -1}], "payload.attachments.0.size", "greater than or equal to 0"),
        ("payload.attachments", [{"size": True}], "payload.attachments.0.size", "integer"),
        ("payload.attachments", [{"bytes": 1}], "payload.attachments.0.bytes", "leave it out"),
    ],
)
def test_what_is_wrong_is_named_with_its_remedy(path: str, value: object, field: str, remedy: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_envelope(changed(path, value))
    assert refused.value.field == field
    assert remedy in str(refused.value)


@pytest.mark.parametrize("data", [None, [], "text", 5, {"schema_version": "ingest.v1"}])
def test_what_is_no_envelope_at_all_is_refused(data: object) -> None:
    with pytest.raises(BadInput):
        parse_envelope(data)


def test_a_derived_key_that_would_be_too_long_is_hashed() -> None:
    envelopes = [parse_envelope(changed("event.external_event_id", letter * 512)) for letter in "éà"]
    keys = [envelope.event_key for envelope in envelopes]
    assert len(set(keys)) == 2
    assert all(len(key) < 100 for key in keys)


@pytest.mark.parametrize("raw", [{"a": "\ud800"}, {"a": object()}], ids=["half a character", "no JSON"])
def test_what_json_cannot_hold_is_refused_before_it_is_stored(raw: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="payload"):
        envelope_text(parse_envelope(changed("payload.raw", raw)))


@pytest.mark.parametrize("field", ["event.external_event_id", "sender.identity", "source.endpoint_identity"])
@pytest.mark.parametrize("letter", ["\x00", "\n", "\r", "\t", "\x1f", "\x7f"])
def test_a_name_with_a_control_character_is_refused(field: str, letter: str) -> None:
    for name in (f"a{letter}b", f"{letter}a", f"a{letter}"):
        with pytest.raises(BadInput) as refused:
            parse_envelope(changed(field, name))
        assert refused.value.field == field


def test_words_may_hold_any_character() -> None:
    text = "a\0b\x1b[31m\n\x7f\u2028é😀"
    assert parse_envelope(changed("payload.normalized_text", text)).payload.normalized_text == text


@pytest.mark.parametrize(
    ("channel", "provider", "good"),
    [
        ("email", "gmail", True),
        ("email", "imap", True),
        ("email", "internal", False),
        ("api", "internal", True),
        ("api", "api", False),
        ("mcp", "internal", True),
        ("mcp", "gmail", False),
        *((channel, channel, True) for channel in ("telegram", "slack", "discord", "webhook", "redis")),
        *((channel, "internal", True) for channel in ("telegram", "slack", "discord", "webhook", "redis")),
        ("telegram", "slack", False),
    ],
)
def test_channels_and_providers_go_together_or_not(channel: str, provider: str, good: bool) -> None:
    envelope = changed("source.channel", channel)
    envelope["source"]["provider"] = provider
    if good:
        assert parse_envelope(envelope).source.channel == channel
    else:
        with pytest.raises(BadInput, match=f"^source: .*{provider}.*use "):
            parse_envelope(envelope)


def test_a_time_with_any_offset_is_kept_in_utc() -> None:
    assert parse_envelope(GOOD).event.observed_at.isoformat() == "2026-11-15T07:00:00+00:00"


# How an event is known.


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("source.provider", "imap"),
        ("source.endpoint_identity", "gmail:user:b@b.example"),
        ("event.external_event_id", "18F"),
        ("event.external_event_id", "18f "),
    ],
)
def test_another_source_or_another_id_is_another_event(path: str, value: str) -> None:
    assert parse_envelope(changed(path, value)).event_key != parse_envelope(GOOD).event_key


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("event.observed_at", "2026-11-16T08:00:00Z"),
        ("event.external_thread_id", "t"),
        ("sender.identity", "other@d.example"),
        ("payload.raw", {"labels": ["INBOX"]}),
        ("payload.normalized_text", "other"),
        ("control.policy_tier", "interactive"),
    ],
)
def test_what_may_differ_between_copies_leaves_the_event_the_same(path: str, value: object) -> None:
    assert parse_envelope(changed(path, value)).event_key == parse_envelope(GOOD).event_key


def test_parts_of_the_event_key_cannot_run_into_each_other() -> None:
    one, other = changed("source.endpoint_identity", "a b"), changed("source.endpoint_identity", "a")
    one["event"]["external_event_id"], other["event"]["external_event_id"] = "c", "b c"
    assert parse_envelope(one).event_key != parse_envelope(other).event_key


def test_long_events_that_differ_only_at_the_border_of_their_parts_have_different_keys() -> None:
    one, other = changed("source.endpoint_identity", "e" * 300), changed("source.endpoint_identity", "e" * 301)
    one["event"]["external_event_id"], other["event"]["external_event_id"] = "e" * 301, "e" * 300
    assert parse_envelope(one).event_key != parse_envelope(other).event_key


# Depth and size.


def nested(levels: int, wrap: str = "object") -> dict[str, Any]:
    """An object in an object, or lists in it, so many levels deep altogether."""
    inner: Any = {} if wrap == "object" else []
    for _ in range(levels - 2):
        inner = {"a": inner} if wrap == "object" else [inner]
    return {"a": inner}


@pytest.mark.parametrize("wrap", ["object", "list"])
def test_a_payload_may_be_nested_so_deep_and_no_deeper(wrap: str) -> None:
    deepest = parse_envelope(changed("payload.raw", nested(DEEPEST_PAYLOAD, wrap)))
    assert envelope_text(deepest)
    with pytest.raises(BadInput, match=f"payload.raw: .*deeper than {DEEPEST_PAYLOAD}"):
        parse_envelope(changed("payload.raw", nested(DEEPEST_PAYLOAD + 1, wrap)))


def test_a_payload_too_deep_for_any_stack_is_refused_like_any_other() -> None:
    with pytest.raises(BadInput, match=r"payload\.raw"):
        parse_envelope(changed("payload.raw", nested(100_000)))


def test_an_envelope_may_be_so_large_and_no_larger() -> None:
    room = LARGEST_ENVELOPE - len(envelope_text(parse_envelope(changed("payload.normalized_text", ""))))
    assert len(envelope_text(parse_envelope(changed("payload.normalized_text", "x" * room)))) == LARGEST_ENVELOPE
    with pytest.raises(BadInput, match="keep the envelope under 10 MiB") as refused:
        envelope_text(parse_envelope(changed("payload.normalized_text", "x" * (room + 1))))
    assert refused.value.field == "payload"
