"""ingest.v1: what is accepted, and how what is not is named."""

from copy import deepcopy
from typing import Any

import pytest

from postroom.core.envelope import envelope_text, parse_envelope
from postroom.core.errors import BadInput

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
        ("event.external_event_id", "a\0b", "event.external_event_id", "pattern"),
        ("event.kind", "x" * 129, "event.kind", "128"),
        ("event.observed_at", 1763193600, "event.observed_at", "2026-11-15T08:00:00Z"),
        ("event.observed_at", "0001-01-01T00:00:00+14:00", "event.observed_at", "calendar"),
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
