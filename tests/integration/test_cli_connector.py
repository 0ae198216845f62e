"""`postroom connector`: what is refused before anything is connected, and the list of those that report."""

import asyncio
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from postroom.compose.application import PostroomApplication
from postroom.core.heartbeat import parse_heartbeat
from postroom.interfaces.cli import run
from postroom.store.engine.opening import open_database
from postroom.store.intake.connectors import record_heartbeat

REDIS = "redis://127.0.0.1:1/0"


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in [name for name in os.environ if name.startswith("POSTROOM_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POSTROOM_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("POSTROOM_CONNECTOR_TOKEN", "a token")
    # The logs have their own tests; here they must not stay on for the tests that follow.
    monkeypatch.setattr("postroom.telemetry.logs.configure_logging", lambda *_args, **_more: None)  # type: ignore[reportUnknownLambdaType]
    return monkeypatch


def postroom(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        run(PostroomApplication(), arguments)
    return int(ended.value.code or 0)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--url", "redis://user:hunter2@127.0.0.1/0"], "POSTROOM_REDIS_URL"),
        (["--url", "redis://127.0.0.1/0?password=hunter2"], "POSTROOM_REDIS_URL"),
        (["--url", "http://127.0.0.1/"], "redis.url"),
        (["--url", "redis://127.0.0.1:port/0"], "redis.url"),
        (["--switchboard", "127.0.0.1:8025"], "connector.switchboard_url"),
        (["--switchboard", "http://user:hunter2@127.0.0.1/mcp"], "connector.switchboard_url"),
        (["--group", "g" * 129], "--group"),
        (["--consumer", "two words"], "--consumer"),
        (["--stream", "one\ntwo"], "--stream"),
        (["--stream", " "], "--stream"),
        (["--identity", "x" * 513], "--identity"),
        (["--batch", "101"], "--batch"),
        (["--claim-after", "0.5"], "--claim-after"),
    ],
)
def test_a_wrong_option_is_reported_in_one_line(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], options: list[str], complaint: str
):
    assert postroom("connector", "redis-stream", "--url", REDIS, "--stream", "events", *options) == 2
    told = capsys.readouterr().err
    assert complaint in told
    assert "hunter2" not in told
    assert "Traceback" not in told


def test_without_a_token_it_says_how_to_get_one(environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    environment.delenv("POSTROOM_CONNECTOR_TOKEN")
    assert postroom("connector", "redis-stream", "--url", REDIS, "--stream", "events") == 2
    assert "postroom token create --role connector --identity redis:events" in capsys.readouterr().err


def test_without_an_address_it_says_where_to_put_one(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    assert postroom("connector", "redis-stream", "--stream", "events") == 2
    assert "POSTROOM_REDIS_URL" in capsys.readouterr().err


@pytest.mark.parametrize(("minutes", "liveness"), [(0, "online"), (3, "stale"), (5, "offline")])
def test_the_list_tells_whether_a_connector_still_reports(
    environment: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    minutes: int,
    liveness: str,
):
    asyncio.run(_reported(tmp_path, datetime.now(UTC) - timedelta(minutes=minutes)))
    assert postroom("connector", "list", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["liveness"] == liveness
    assert shown["counters"] == {"accepted": 3, "read": 4}
    assert shown["checkpoint"]["cursor"] == "5-0"
    assert postroom("connector", "list") == 0
    table = capsys.readouterr().out.splitlines()
    assert table[0].split() == [
        *("TYPE", "IDENTITY", "INSTANCE", "LIVENESS", "STATE", "LAST", "HEARTBEAT", "COUNTERS", "CHECKPOINT"),
        "CONTACTS",
    ]
    for word in ("redis-stream", "redis:events", "host-1", liveness, "degraded", "accepted=3", "read=4", "5-0"):
        assert word in table[1].split()


async def _reported(folder: Path, moment: datetime) -> None:
    report: dict[str, Any] = {
        "schema_version": "connector.heartbeat.v1",
        "connector": {
            "connector_type": "redis-stream",
            "endpoint_identity": "redis:events",
            "instance_id": "host-1",
            "version": "1.0",
        },
        "status": {"state": "degraded", "uptime_s": 3.0},
        "counters": {"read": 4, "accepted": 3},
        "checkpoint": {"cursor": "5-0", "updated_at": moment.isoformat()},
        "sent_at": moment.isoformat(),
    }
    database = await open_database(folder, None)
    await database.run(record_heartbeat(parse_heartbeat(report), moment))
    await database.close()
