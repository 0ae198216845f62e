"""connector.heartbeat.v1: what is accepted, how errors name what is not, and what silence means."""

from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from postroom.core.errors import BadInput
from postroom.core.heartbeat import liveness, parse_heartbeat

GOOD: dict[str, Any] = {
    "schema_version": "connector.heartbeat.v1",
    "connector": {
        "connector_type": "gmail",
        "endpoint_identity": "gmail:user:a@b.example",
        "instance_id": "host:4711",
        "version": "1.0.0",
    },
    "status": {"state": "degraded", "error_message": "contacts are old", "uptime_s": 12.5},
    "counters": {"messages.ingested": 3, "errors": 0},
    "checkpoint": {"cursor": "12345", "updated_at": "2026-11-15T08:00:00+01:00"},
    "sent_at": "2026-11-15T09:00:00+01:00",
}
LEAST: dict[str, Any] = {
    "schema_version": "connector.heartbeat.v1",
    "connector": {"connector_type": "redis-stream", "endpoint_identity": "redis:events", "instance_id": "1"},
    "status": {"state": "healthy", "uptime_s": 0},
    "sent_at": "2026-11-15T08:00:00Z",
}
NOW = datetime(2026, 11, 15, 8, tzinfo=UTC)


def changed(path: str, value: object) -> dict[str, Any]:
    report = deepcopy(GOOD)
    place: dict[str, Any] = report
    *above, last = path.split("/")
    for part in above:
        place = place[part]
    place[last] = value
    return report


def test_a_whole_report_is_read_with_its_times_in_utc() -> None:
    report = parse_heartbeat(GOOD)
    assert (report.connector.connector_type, report.connector.version) == ("gmail", "1.0.0")
    assert (report.status.state, report.status.error_message, report.status.uptime_s) == (
        "degraded",
        "contacts are old",
        12.5,
    )
    assert report.counters == {"messages.ingested": 3, "errors": 0}
    assert report.checkpoint is not None
    assert report.checkpoint.updated_at == datetime(2026, 11, 15, 7, tzinfo=UTC)
    assert report.sent_at == NOW


def test_the_least_report_has_no_counters_and_no_checkpoint() -> None:
    report = parse_heartbeat(LEAST)
    assert report.counters == {}
    assert report.checkpoint is None
    assert report.connector.version is None
    assert parse_heartbeat({**LEAST, "checkpoint": None, "counters": {}}) == report


@pytest.mark.parametrize(
    ("path", "value", "field", "remedy"),
    [
        ("schema_version", "connector.heartbeat.v2", "schema_version", "give connector.heartbeat.v1"),
        ("conector", {}, "conector", "did you mean 'connector'?"),
        ("status/uptime", 5, "status.uptime", "did you mean 'uptime_s'?"),
        ("checkpoint/cursr", "1", "checkpoint.cursr", "did you mean 'cursor'?"),
        ("something", 1, "something", "leave it out"),
        ("sent_at", "2026-11-15T08:00:00", "sent_at", "add an offset"),
        ("sent_at", 1763193600, "sent_at", "2026-11-15T08:00:00Z"),
        ("checkpoint/updated_at", "yesterday", "checkpoint.updated_at", "2026-11-15T08:00:00Z"),
        ("connector", None, "connector", "an object with connector_type"),
        ("connector/connector_type", "Gmail Live", "connector.connector_type", "a-z"),
        ("connector/endpoint_identity", "", "connector.endpoint_identity", "endpoint"),
        ("connector/endpoint_identity", "a" * 513, "connector.endpoint_identity", "512"),
        ("connector/instance_id", "a\nb", "connector.instance_id", "without spaces"),
        ("connector/instance_id", "a" * 129, "connector.instance_id", "128"),
        ("connector/version", "1\n", "connector.version", "without spaces"),
        ("status/state", "fine", "status.state", "healthy, degraded or error"),
        ("status/uptime_s", -0.5, "status.uptime_s", "0 or more"),
        ("status/uptime_s", "12", "status.uptime_s", "seconds"),
        ("status/uptime_s", True, "status.uptime_s", "seconds"),
        ("status/uptime_s", float("nan"), "status.uptime_s", "seconds"),
        ("status/uptime_s", float("inf"), "status.uptime_s", "seconds"),
        ("status/error_message", "x" * 501, "status.error_message", "500"),
        ("status/error_message", "a\0b", "status.error_message", "500"),
        ("checkpoint/cursor", "x" * 513, "checkpoint.cursor", "512"),
        ("checkpoint/cursor", 12345, "checkpoint.cursor", "text"),
        ("counters/errors", -1, "counters.errors", "0 or more"),
        ("counters/errors", 1.0, "counters.errors", "whole number"),
        ("counters/errors", True, "counters.errors", "whole number"),
        ("counters/errors", {"deep": 1}, "counters.errors", "whole number"),
        ("counters/errors", 2**63, "counters.errors", "whole number"),
        ("counters/Errors!", 1, "counters.Errors!.[key]", "a-z"),
        ("counters", {f"c{n}": n for n in range(65)}, "counters", "64"),
        ("counters", [1], "counters", "64"),
    ],
)
def test_what_is_wrong_is_named_with_its_remedy(path: str, value: object, field: str, remedy: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_heartbeat(changed(path, value))
    assert refused.value.field == field
    assert remedy in str(refused.value)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("counters", {f"c{n}": n for n in range(64)}),
        ("counters/errors", 2**63 - 1),
        ("status/error_message", "x" * 500),
        ("checkpoint/cursor", "x" * 512),
        ("connector/instance_id", "a" * 128),
    ],
)
def test_what_is_as_large_as_is_allowed_is_accepted(path: str, value: object) -> None:
    parse_heartbeat(changed(path, value))


@pytest.mark.parametrize("data", [None, [], "text", 5, {}, {"schema_version": "connector.heartbeat.v1"}])
def test_what_is_no_report_at_all_is_refused(data: object) -> None:
    with pytest.raises(BadInput):
        parse_heartbeat(data)


@pytest.mark.parametrize("path", ["status/error_message", "checkpoint/cursor", "connector/endpoint_identity"])
def test_half_a_character_is_refused(path: str) -> None:
    with pytest.raises(BadInput):
        parse_heartbeat(changed(path, "\ud800"))


def test_a_mistyped_name_is_named_before_what_is_missing_for_it() -> None:
    report = {**LEAST, "statuss": LEAST["status"]}
    del report["status"]
    with pytest.raises(BadInput, match=r"^statuss: .*did you mean 'status'\?$"):
        parse_heartbeat(report)


def test_a_hostile_name_is_repeated_neither_at_length_nor_with_what_moves_a_cursor() -> None:
    with pytest.raises(BadInput) as refused:
        parse_heartbeat({**LEAST, "\x1b[2J" + "x" * 10_000: 1})
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 300


def test_hostile_text_stays_what_it_is() -> None:
    message = "<script>alert(1)</script>\n'; DROP TABLE connectors; -- \x1b[2J"
    assert parse_heartbeat(changed("status/error_message", message)).status.error_message == message


@pytest.mark.parametrize(
    ("silent_s", "expected"),
    [
        (-5, "online"),
        (-3600, "offline"),
        (0, "online"),
        (119.999999, "online"),
        (120, "stale"),
        (239.999999, "stale"),
        (240, "offline"),
        (10**9, "offline"),
    ],
)
def test_silence_makes_a_connector_stale_and_then_offline(silent_s: float, expected: str) -> None:
    assert liveness(NOW, NOW + timedelta(seconds=silent_s)) == expected
