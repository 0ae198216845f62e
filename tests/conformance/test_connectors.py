"""The connector registry: the last report of every instance, whatever order reports arrive in."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from postroom.core.errors import ConstraintBroken
from postroom.core.heartbeat import Heartbeat, liveness, parse_heartbeat
from postroom.store.engine.database import Database, Script, Text, transaction
from postroom.store.intake.connectors import connectors_of, list_connectors, record_heartbeat
from support.clocks import ManualClock
from support.store.dump import dump

ENDPOINT = "gmail:user:me@example.com"


def report(sent_at: datetime, instance: str = "one", endpoint: str = ENDPOINT, **status: Any) -> Heartbeat:
    return parse_heartbeat(
        {
            "schema_version": "connector.heartbeat.v1",
            "connector": {
                "connector_type": "gmail",
                "endpoint_identity": endpoint,
                "instance_id": instance,
                "version": "1.2",
            },
            "status": {"state": "healthy", "uptime_s": 7.5} | status,
            "counters": {"ingested": 2**53, "errors": 0},
            "checkpoint": {"cursor": "h1", "updated_at": sent_at},
            "sent_at": sent_at,
        }
    )


async def test_a_report_is_kept_whole(database: Database, clock: ManualClock) -> None:
    sent_at = clock() - timedelta(seconds=2)
    assert await database.run(record_heartbeat(report(sent_at, state="error", error_message="403"), clock()))
    (found,) = await database.run(list_connectors())
    assert (found.connector_type, found.endpoint_identity, found.instance_id) == ("gmail", ENDPOINT, "one")
    assert (found.version, found.state, found.error, found.uptime_s) == ("1.2", "error", "403", 7.5)
    assert found.counters == {"ingested": 2**53, "errors": 0}
    assert found.checkpoint is not None
    assert found.checkpoint["cursor"] == "h1"
    assert datetime.fromisoformat(found.checkpoint["updated_at"]) == sent_at
    assert (found.first_seen_at, found.last_heartbeat_at, found.last_sent_at) == (clock(), clock(), sent_at)


async def test_how_fresh_its_contacts_are_is_kept_when_a_connector_says_so(
    database: Database, clock: ManualClock
) -> None:
    silent = report(clock())
    await database.run(record_heartbeat(silent, clock()))
    (found,) = await database.run(list_connectors())
    assert "contacts_generated_at" not in (found.checkpoint or {})
    assert silent.checkpoint is not None
    made_at, now = clock(), clock.forward(120)
    fresh = silent.checkpoint.model_copy(update={"contacts_generated_at": made_at})
    await database.run(record_heartbeat(silent.model_copy(update={"checkpoint": fresh, "sent_at": now}), now))
    (found,) = await database.run(list_connectors())
    assert found.contacts_generated_at == made_at


async def test_a_later_report_takes_the_place_of_the_earlier_one(database: Database, clock: ManualClock) -> None:
    first_seen = clock()
    await database.run(record_heartbeat(report(clock(), state="error", error_message="403"), clock()))
    clock.forward(120)
    later = report(clock(), uptime_s=130).model_copy(update={"checkpoint": None, "counters": {}})
    assert await database.run(record_heartbeat(later, clock()))
    (found,) = await database.run(list_connectors())
    assert (found.state, found.error, found.uptime_s, found.counters) == ("healthy", None, 130, {})
    assert found.checkpoint is None
    assert (found.first_seen_at, found.last_heartbeat_at) == (first_seen, clock())


async def test_an_older_report_that_arrives_late_changes_nothing(database: Database, clock: ManualClock) -> None:
    sent_at = clock()
    await database.run(record_heartbeat(report(sent_at), clock()))
    before = await dump(database)
    late = report(sent_at - timedelta(microseconds=1), state="error")
    assert not await database.run(record_heartbeat(late, clock.forward(60)))
    assert await dump(database) == before


async def test_the_same_report_again_counts_as_a_sign_of_life(database: Database, clock: ManualClock) -> None:
    same = report(clock())
    await database.run(record_heartbeat(same, clock()))
    assert await database.run(record_heartbeat(same, clock.forward(1)))
    (found,) = await database.run(list_connectors())
    assert found.last_heartbeat_at == clock()


async def test_a_report_from_the_future_does_not_silence_its_connector(database: Database, clock: ManualClock) -> None:
    """A clock that was a year ahead, and was put right."""
    await database.run(record_heartbeat(report(clock() + timedelta(days=365), state="error"), clock()))
    clock.forward(120)
    assert await database.run(record_heartbeat(report(clock()), clock()))
    (found,) = await database.run(list_connectors())
    assert (found.state, found.last_sent_at) == ("healthy", clock())


async def test_each_instance_and_each_endpoint_has_its_own_row(database: Database, clock: ManualClock) -> None:
    for instance, endpoint in (("one", ENDPOINT), ("two", ENDPOINT), ("one", "gmail:user:other@example.com")):
        await database.run(record_heartbeat(report(clock(), instance, endpoint), clock()))
    assert len(await database.run(list_connectors())) == 3
    ours = await database.run(connectors_of(ENDPOINT))
    assert sorted(each.instance_id for each in ours) == ["one", "two"]
    assert {each.endpoint_identity for each in ours} == {ENDPOINT}
    assert await database.run(connectors_of("gmail:user:nobody@example.com")) == []


async def test_a_connector_that_falls_silent_is_stale_and_then_offline(database: Database, clock: ManualClock) -> None:
    await database.run(record_heartbeat(report(clock()), clock()))
    (found,) = await database.run(list_connectors())
    heard = found.last_heartbeat_at
    assert [liveness(heard, clock()), liveness(heard, clock.forward(120)), liveness(heard, clock.forward(120))] == [
        "online",
        "stale",
        "offline",
    ]


async def test_the_longest_names_and_hostile_texts_are_kept_as_they_are(database: Database, clock: ManualClock) -> None:
    endpoint = "".join(chr(0x1F300 + n) for n in range(512))
    message = "<script>\n'; DROP TABLE connectors; --\x1b[2J"
    hostile = report(clock(), "i" * 128, endpoint, state="error", error_message=message)
    assert await database.run(record_heartbeat(hostile, clock()))
    (found,) = await database.run(connectors_of(endpoint))
    assert (found.endpoint_identity, found.error) == (endpoint, message)


async def test_the_schema_itself_refuses_a_state_that_is_none(database: Database, clock: ManualClock) -> None:
    await database.run(record_heartbeat(report(clock()), clock()))

    @transaction
    def break_it() -> Script[None]:
        yield Text("UPDATE connectors SET state = 'fine'")

    with pytest.raises(ConstraintBroken):
        await database.run(break_it())
