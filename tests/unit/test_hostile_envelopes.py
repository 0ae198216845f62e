"""Malicious envelopes are refused at once, in little memory, and with a short answer."""

import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from postroom.core.errors import BadInput
from postroom.core.heartbeat import parse_heartbeat
from postroom.core.queue.envelope import MOST_ATTACHMENTS, parse_envelope
from postroom.core.strict import LONGEST_SHOWN, MOST_KEYS
from postroom.interfaces.argument_forms import Arguments, read_arguments
from postroom.interfaces.http.mcp.registry import TOOLS_BY_NAME
from support.processor_time import MILLION, within_turns
from support.switchboard import envelope

MOST_MEMORY = 32 * 2**20
CROWD = {f"k{number}": number for number in range(300_000)}
LONG_KEY = "k" * (9 * 2**20)


def report(**parts: Any) -> dict[str, Any]:
    return {
        "schema_version": "connector.heartbeat.v1",
        "connector": {"connector_type": "webhook", "endpoint_identity": "webhook:ci", "instance_id": "one"},
        "status": {"state": "healthy", "uptime_s": 5},
        "sent_at": "2026-11-15T08:00:00Z",
        **parts,
    }


def quick_refusal(read: Callable[[], object]) -> BadInput:
    """Once for its cost and once by the scales, since weighing costs something itself."""
    refused = within_turns(20 * MILLION, lambda: _refusal(read))
    tracemalloc.start()
    try:
        with pytest.raises(BadInput):
            read()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MOST_MEMORY
    assert len(str(refused)) < 1000
    return refused


def read_tool_arguments(tool: str, given: dict[str, Any]) -> Arguments:
    return read_arguments(tool, TOOLS_BY_NAME[tool].arguments, given)


def _refusal(read: Callable[[], object]) -> BadInput:
    with pytest.raises(BadInput) as refused:
        read()
    return refused.value


CROWDED = [
    ("envelope", {**envelope(), **CROWD}),
    ("event", envelope(event=CROWD)),
    ("control", envelope(control=CROWD)),
    ("control.trace_context", envelope(control={"trace_context": CROWD})),
    ("payload.attachments.0", envelope(payload={"attachments": [CROWD]})),
]


@pytest.mark.parametrize(("field", "data"), CROWDED, ids=[field for field, _ in CROWDED])
def test_an_object_of_very_many_keys_is_refused_as_such(field: str, data: dict[str, Any]) -> None:
    refused = quick_refusal(lambda: parse_envelope(data))
    assert refused.field == field
    assert f"more than {MOST_KEYS}" in refused.problem


@pytest.mark.parametrize("field", ["heartbeat", "counters", "status"])
def test_a_report_of_very_many_keys_is_refused_as_such(field: str) -> None:
    data = report(**CROWD) if field == "heartbeat" else report(**{field: CROWD})
    refused = quick_refusal(lambda: parse_heartbeat(data))
    assert refused.field == field
    assert f"more than {MOST_KEYS}" in refused.problem


def test_a_call_with_very_many_arguments_is_refused_as_such() -> None:
    refused = quick_refusal(lambda: read_tool_arguments("queue.next", CROWD))
    assert refused.field == "arguments"
    assert "queue.next takes queue" in refused.remedy


def test_as_many_keys_as_may_be_are_looked_at_one_by_one() -> None:
    unknown = {f"k{number}": number for number in range(MOST_KEYS - len(envelope()))}
    with pytest.raises(BadInput, match="k0: is not a field"):
        parse_envelope({**envelope(), **unknown})


def test_payload_raw_is_the_producers_own_and_may_have_as_many_keys_as_it_likes() -> None:
    many = {f"k{number}": number for number in range(1000)}
    assert parse_envelope(envelope(payload={"raw": many})).payload.raw == many


def test_no_more_attachments_are_taken_than_a_thousand() -> None:
    each = {"filename": "a.pdf", "size": 1}
    held = parse_envelope(envelope(payload={"attachments": [each] * MOST_ATTACHMENTS})).payload.attachments
    assert len(held) == MOST_ATTACHMENTS == 1000
    data = envelope(payload={"attachments": [each] * (MOST_ATTACHMENTS + 1)})
    with pytest.raises(BadInput, match="at most 1000") as refused:
        parse_envelope(data)
    assert refused.value.field == "payload.attachments"


@pytest.mark.parametrize("wrong", [{"sise": 1}, {"size": -1}, {}, 0, None], ids=str)
def test_megabytes_of_attachments_are_refused_at_the_first_or_by_their_number(wrong: object) -> None:
    text = json.dumps(wrong)
    data = envelope(payload={"attachments": [wrong] * (5 * 2**20 // len(text))})
    assert quick_refusal(lambda: parse_envelope(data)).field.startswith("payload.attachments")


def test_a_key_of_megabytes_is_refused_and_not_repeated() -> None:
    places = [
        {**envelope(), LONG_KEY: 1},
        envelope(event={LONG_KEY: 1}),
        envelope(payload={"attachments": [{LONG_KEY: 1}]}),
    ]
    for data in places:
        refused = quick_refusal(lambda data=data: parse_envelope(data))
        assert refused.problem == "is not a field of ingest.v1"
        assert len(refused.field) < LONGEST_SHOWN + 30
    assert quick_refusal(lambda: parse_heartbeat(report(**{LONG_KEY: 1}))).problem.startswith("is not a field")


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")], ids=str)
@pytest.mark.parametrize("depth", [0, 1, 50])
def test_a_number_that_json_has_no_word_for_is_refused(number: float, depth: int) -> None:
    value: Any = number
    for level in range(depth):
        value = [value] if level % 2 else {"deeper": value}
    with pytest.raises(BadInput, match="cannot represent") as refused:
        parse_envelope(envelope(payload={"raw": {"fine": 1.5, "value": value}}))
    assert refused.value.field == "payload.raw"


def test_a_mistyped_name_is_reported_and_not_that_the_right_one_is_missing() -> None:
    whole = envelope()
    whole["sendr"] = whole.pop("sender")
    with pytest.raises(BadInput) as refused:
        parse_envelope(whole)
    assert (refused.value.field, refused.value.remedy) == ("sendr", "did you mean 'sender'?")
    data = report()
    data["status"] = {"stat": "healthy", "uptime_s": 5}
    with pytest.raises(BadInput) as refused:
        parse_heartbeat(data)
    assert (refused.value.field, refused.value.remedy) == ("status.stat", "did you mean 'state'?")


def test_a_mistyped_argument_is_reported_and_not_that_the_right_one_is_missing() -> None:
    with pytest.raises(BadInput) as refused:
        read_tool_arguments("queue.next", {"quue": "gateway"})
    assert (refused.value.field, refused.value.remedy) == ("quue", "did you mean 'queue'?")


def test_an_argument_with_a_name_of_megabytes_is_refused_and_not_repeated() -> None:
    refused = quick_refusal(lambda: read_tool_arguments("queue.next", {"queue": "gateway", LONG_KEY: 1}))
    assert refused.problem == "is not an argument of queue.next"


def test_megabytes_of_wrong_references_are_refused_at_once() -> None:
    wrong = [{"message_id": "x"}] * 300_000
    assert quick_refusal(lambda: read_tool_arguments("queue.ack", {"items": wrong})).field.startswith("items")
