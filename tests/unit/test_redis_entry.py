"""An entry of a Redis stream as an envelope: common field names are understood, nothing is dropped."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.errors import BadInput
from postroom.core.queue.content_hash import content_hash
from postroom.core.queue.envelope import envelope_text, parse_envelope
from postroom.core.queue.queues import GATEWAY
from postroom.sources.redis_stream.entry import place, to_envelope

ID = "1763193600123-7"
STREAM = "agent:events"
IDENTITY = "redis:agent:events"
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def of(*pairs: tuple[str | bytes, str | bytes], entry_id: str = ID, **fields: str | bytes) -> dict[str, Any]:
    as_bytes = tuple((_bytes(name), _bytes(value)) for name, value in (*pairs, *fields.items()))
    envelope = to_envelope(entry_id, as_bytes, stream=STREAM, identity=IDENTITY)
    return envelope


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def test_an_entry_is_reported_by_its_stream_and_id_and_the_time_in_the_id():
    envelope = parse_envelope(of(text="hello"))
    assert envelope.source.endpoint_identity == IDENTITY
    assert (envelope.source.channel, envelope.source.provider) == ("redis", "redis")
    assert envelope.event.external_event_id == ID
    assert envelope.event.observed_at == datetime(2025, 11, 15, 8, 0, 0, 123_000, tzinfo=UTC)


def test_under_an_identity_that_does_not_name_the_stream_the_event_id_does():
    """Else an entry of one stream would be taken for the entry of the same id in another."""
    fields = ((b"text", b"hello"),)
    made = [to_envelope(ID, fields, stream=stream, identity="agents") for stream in ("one", "two")]
    assert [each["event"]["external_event_id"] for each in made] == [f"one:{ID}", f"two:{ID}"]
    assert len({parse_envelope(each).event_key for each in made}) == 2


def test_a_stream_with_an_endless_name_still_has_event_ids_of_its_own():
    fields = ((b"sender", b"ci"), (b"text", b"hello"))
    long = [to_envelope(ID, fields, stream="s" * 600 + end, identity="agents") for end in "ab"]
    ids = {parse_envelope(each).event.external_event_id for each in long}
    assert len(ids) == 2
    assert all(len(each) <= 512 for each in ids)


@pytest.mark.parametrize("field", ["event", "kind", "type"])
def test_the_kind_is_read_from_its_usual_fields(field: str):
    assert of((field, "deploy.failed"))["event"]["kind"] == "deploy.failed"


@pytest.mark.parametrize("unfit", ["", "  ", "k" * 129, "two words", "deploy\nfailed"])
def test_what_cannot_be_a_kind_is_skipped_and_stays_in_raw(unfit: str):
    envelope = of(event=unfit, kind="deploy.failed")
    assert envelope["event"]["kind"] == "deploy.failed"
    assert envelope["payload"]["raw"]["event"] == unfit
    assert parse_envelope(of(event=unfit)).event.kind is None


@pytest.mark.parametrize("field", ["thread", "session"])
def test_the_thread_is_read_from_its_usual_fields(field: str):
    assert of((field, "t-1"))["event"]["external_thread_id"] == "t-1"


@pytest.mark.parametrize("field", ["sender", "source", "from"])
def test_the_sender_is_read_from_its_usual_fields(field: str):
    assert of((field, "ci"))["sender"]["identity"] == "ci"


def test_without_a_sender_the_stream_is_the_sender():
    assert of(text="hello")["sender"]["identity"] == STREAM
    assert of(sender="s" * 513)["sender"]["identity"] == STREAM


@pytest.mark.parametrize("field", ["text", "message", "body", "prompt", "payload"])
def test_the_text_is_read_from_its_usual_fields(field: str):
    assert of((field, "push changes"))["payload"]["normalized_text"] == "push changes"


def test_text_comes_before_payload_whatever_their_order():
    assert of(payload='{"a":1}', text="words")["payload"]["normalized_text"] == "words"
    assert of(payload='{"a":1}', text=" ")["payload"]["normalized_text"] == '{"a":1}'


def test_without_any_text_the_fields_themselves_are_the_text():
    assert of(run="42", result='{"ok":true}')["payload"]["normalized_text"] == '{"run":"42","result":{"ok":true}}'


def test_all_fields_are_kept_and_objects_are_decoded():
    raw = of(text="x", data='{"n":1,"deep":{"a":[1]}}', empty="{}", list="[1]", broken="{no", number="7")["payload"][
        "raw"
    ]
    assert raw == {
        "text": "x",
        "data": {"n": 1, "deep": {"a": [1]}},
        "empty": {},
        "list": "[1]",
        "broken": "{no",
        "number": "7",
    }


def test_an_object_whose_numbers_would_be_rounded_stays_text():
    kept = of(text="x", data='{"id":1000000000000000000000001}')["payload"]["raw"]["data"]
    assert kept == '{"id":1000000000000000000000001}'


def test_a_repeated_field_keeps_all_its_values():
    assert of(("tag", "a"), ("tag", "b"))["payload"]["raw"] == {"tag": ["a", "b"]}


def test_bytes_that_are_no_utf8_are_written_out():
    assert of(text=b"caf\xe9 \xff")["payload"] == {
        "raw": {"text": "caf\\xe9 \\xff"},
        "normalized_text": "caf\\xe9 \\xff",
    }


def test_a_trace_goes_along_and_a_malformed_one_does_not_hurt():
    assert of(traceparent=TRACE)["control"]["trace_context"] == {"traceparent": TRACE}
    both = of(traceparent=TRACE, tracestate="vendor=1")["control"]["trace_context"]
    assert both == {"traceparent": TRACE, "tracestate": "vendor=1"}
    assert of(traceparent="nonsense")["control"]["trace_context"] is None


@pytest.mark.parametrize("field", ["envelope", "ingest"])
def test_a_whole_envelope_is_taken_as_it_is(field: str):
    whole = of(text="hello", event="deploy.failed") | {"sender": {"identity": "someone"}}
    assert of((field, json.dumps(whole)), text="ignored") == whole


def test_an_object_without_a_schema_version_is_an_ordinary_field():
    assert of(envelope='{"to":"bob"}', text="hi")["payload"]["raw"]["envelope"] == {"to": "bob"}


@pytest.mark.parametrize("source", [{"endpoint_identity": "redis:other"}, {}, None, "redis:agent:events"])
def test_a_whole_envelope_of_another_source_is_refused(source: object):
    with pytest.raises(BadInput, match=r"source\.endpoint_identity.*redis:agent:events"):
        of(envelope=json.dumps({"schema_version": "ingest.v1", "source": source}))


@pytest.mark.parametrize("entry_id", ["18446744073709551615-0", "999999999999999999-1"])
def test_an_id_that_is_not_time_is_refused_with_a_remedy(entry_id: str):
    with pytest.raises(BadInput, match="XADD"):
        of(text="x", entry_id=entry_id)


def test_places_are_compared_as_numbers():
    assert sorted(["9-0", "10-2", "10-11"], key=place) == ["9-0", "10-2", "10-11"]


@given(
    st.lists(
        st.tuples(
            st.one_of(st.binary(max_size=8), st.sampled_from([b"event", b"text", b"sender", b"thread", b"payload"])),
            st.one_of(st.binary(max_size=40), st.text(max_size=40).map(lambda text: text.encode("utf-8", "replace"))),
        ),
        max_size=6,
    )
)
def test_whatever_bytes_an_entry_holds_the_envelope_is_a_valid_one(pairs: list[tuple[bytes, bytes]]):
    envelope = to_envelope(ID, tuple(pairs), stream=STREAM, identity=IDENTITY)
    assert envelope_text(parse_envelope(envelope))


# The entries of an agent gateway.


@pytest.mark.parametrize(
    ("fields", "channel", "kind", "tier"),
    [
        ({"source": "telegram:7718912466", "prompt": "push changes"}, "telegram", None, "P0"),
        ({"source": "telegram", "prompt": "push changes"}, "telegram", None, "P0"),
        ({"source": "slack:C01:thread", "prompt": "/status"}, "slack", None, "P0"),
        ({"source": "discord.general", "prompt": "hello"}, "discord", None, "P0"),
        ({"source": "callback_query", "prompt": "approve:7"}, "telegram", "callback_query", "P0"),
        ({"source": "callback_query", "event": "pressed", "prompt": "x"}, "telegram", "callback_query", "P0"),
        ({"source": "inngest", "event": "vercel.deploy.failed", "prompt": "It failed"}, "redis", None, "P1"),
        ({"source": "gateway", "prompt": "x", "metadata": '{"event": "friction-fix"}'}, "redis", "friction-fix", "P1"),
        ({"source": "gateway", "prompt": "x", "metadata": '{"eventType": "test.gateway-e2e"}'}, "redis", None, "P3"),
        ({"source": "media", "event": "media.processed", "prompt": "a dump"}, "redis", "media.processed", "P3"),
        ({"source": "heartbeat", "prompt": "all is well"}, "redis", None, "P2"),
        ({"source": "monitor", "prompt": "/dev/sda1 is 83% full"}, "redis", None, "P2"),
        ({"source": "telegraph:1", "prompt": "x"}, "redis", None, "P2"),
        (
            {"source": "gateway", "prompt": "x", "metadata": '{"event": [1], "type": "two words"}'},
            "redis",
            "",
            "P2",
        ),
        ({"source": "gateway", "prompt": "x", "metadata": ""}, "redis", "", "P2"),
    ],
)
def test_what_a_gateway_writes_has_the_channel_and_the_tier_of_whom_it_is_from(
    fields: dict[str, str], channel: str, kind: str | None, tier: str
):
    envelope = parse_envelope(of(**fields))
    assert (envelope.source.channel, envelope.source.provider) == (channel, channel)
    assert envelope.source.endpoint_identity == IDENTITY
    assert kind is None or (envelope.event.kind or "") == kind
    assert GATEWAY.tier_of(envelope) == tier
    assert envelope.payload.normalized_text == fields["prompt"]
    assert envelope.sender.identity == fields["source"]


def test_what_a_person_repeats_over_a_gateway_is_the_same():
    said = [of(source="telegram:7", prompt="push changes", timestamp=str(n), entry_id=f"{n}-0") for n in range(2)]
    assert content_hash(parse_envelope(said[0])) == content_hash(parse_envelope(said[1]))
