"""The product as a person starts it: real processes, real signals, the command line."""

import asyncio
import json
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2
import pytest
from mcp import types
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types.version import LATEST_MODERN_VERSION

from postroom.compose.demo import held_demo_folder
from postroom.core.errors import AlreadyServed
from postroom.store.engine.long_poll import LONGEST_WAIT_S
from postroom.store.engine.opening import connect_database
from postroom.store.people.tokens import list_tokens
from postroom.words.demo import THINGS
from support.command import announced, environment, postroom, running
from support.patience import PATIENCE_S
from support.switchboard import envelope


def page(url: str) -> str:
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
        return answer.read().decode()


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_the_demo_serves_its_page_and_ends_cleanly_on_a_signal(tmp_path: Path, stop: signal.Signals) -> None:
    with running(tmp_path, "demo", "--port", "0", "--json") as process:
        assert "Postroom" in page(announced(process))
        process.send_signal(stop)
        _, complaints = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0
        assert "Traceback" not in complaints


def test_a_second_serve_on_one_sqlite_file_says_so_and_other_commands_work_beside_it(tmp_path: Path) -> None:
    with running(tmp_path, "serve", "--port", "0", "--json") as first:
        announced(first)
        second = postroom(tmp_path, "serve", "--port", "0", "--json")
        assert second.returncode != 0
        assert f"by process {first.pid}" in second.stderr
        assert "Traceback" not in second.stderr
        assert postroom(tmp_path, "jobs", "list", "--json").returncode == 0
        with running(tmp_path, "worker") as worker:
            worker.send_signal(signal.SIGTERM)
        first.kill()
        first.wait(timeout=PATIENCE_S)
    with running(tmp_path, "serve", "--port", "0", "--json") as third:  # the lock of a killed process is no lock
        announced(third)


def test_a_setting_that_is_changed_beside_a_server_reaches_it_and_survives_its_end(
    tmp_path: Path, emptied_database_url: str | None
) -> None:
    hours = "safety.approval_hours"

    def value(address: str, key: str = hours) -> tuple[object, str]:
        [found] = [each for each in json.loads(page(f"{address}/api/v1/settings"))["lines"] if each["key"] == key]
        return found["value"], found["origin"]

    def command(*words: str) -> subprocess.CompletedProcess[str]:
        return postroom(tmp_path, "settings", *words, database_url=emptied_database_url)

    with running(tmp_path, "serve", "--port", "0", "--json", database_url=emptied_database_url) as first:
        address = announced(first)
        assert value(address) == (24, "default")
        assert command("set", hours, "1000").stderr.endswith("use a whole number from 1 to 720\n")
        assert command("set", hours, "48").stdout == "Changed. Time to approve: 48 hours.\n"
        give_up_at = time.monotonic() + PATIENCE_S
        while value(address) != (48, "database"):
            assert time.monotonic() < give_up_at
        first.kill()
    stronger = {"POSTROOM_SAFETY_APPROVAL_HOURS": "12"}
    for more, wanted in (({}, (48, "database")), (stronger, (12, "POSTROOM_SAFETY_APPROVAL_HOURS"))):
        with running(tmp_path, "serve", "--port", "0", "--json", database_url=emptied_database_url, more=more) as again:
            assert value(announced(again)) == wanted
    listed = [json.loads(line) for line in command("--json").stdout.splitlines()]
    assert [(each["value"], each["from"]) for each in listed if each["setting"] == hours] == [(48, "database")]


def test_what_the_demo_did_can_be_looked_at_with_the_command_line(tmp_path: Path) -> None:
    with running(tmp_path, "demo", "--port", "0", "--json") as process:
        announced(process)
        for line in process.stderr:
            if "connector.looked_back" in line:
                break
        demo = str(tmp_path / "data" / ".postroom-demo")
        for _ in range(100):  # what was handed in is on its way to being decided
            if postroom(tmp_path, "jobs", "list", "--type", "classify", "--json", "--data-dir", demo).stdout:
                break
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
    listed = postroom(tmp_path, "jobs", "list", "--json", "--data-dir", demo)
    jobs = [json.loads(line) for line in listed.stdout.splitlines()]
    assert {"classify"} <= {job["type"] for job in jobs}
    shown = json.loads(postroom(tmp_path, "jobs", "show", jobs[0]["id"], "--json", "--data-dir", demo).stdout)
    assert shown["id"] == jobs[0]["id"]
    listed = postroom(tmp_path, "rules", "list", "--json", "--data-dir", demo)
    rules = [json.loads(line) for line in listed.stdout.splitlines()]
    assert "Newsletters out of the inbox" in {rule["name"] for rule in rules}
    assert not (tmp_path / "data" / "postroom.sqlite3").exists(), "the user's own folder is left alone"


def test_the_commands_that_the_demo_prints_work_as_printed_and_its_data_stays(tmp_path: Path) -> None:
    program = str(Path(sys.executable).with_name("postroom"))
    folder = tmp_path / "data" / ".postroom-demo"
    lines: list[str] = []
    with subprocess.Popen(
        [program, "demo", "--port", "0"],
        env=environment(tmp_path, None),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for line in process.stderr:
            if "connector.looked_back" in line:
                break
        while not lines or "demo --fresh" not in lines[-1]:
            lines.append(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
    indented = [line.strip() for line in lines if line.startswith("  ") and not line.startswith("   ")]
    assert indented[: len(THINGS)] == [f"{number}. {each.title}" for number, each in enumerate(THINGS, 1)]
    *looking, _fresh = indented[len(THINGS) :]
    assert len(looking) == 4
    said = ""
    for command in looking:
        ended = subprocess.run(command, shell=True, cwd="/", capture_output=True, text=True, timeout=PATIENCE_S)
        assert ended.returncode == 0, (command, ended.stderr)
        said += ended.stdout
    assert "stand-in" in said, "`model status` names the model that the demo uses"
    assert (folder / "mailbox.json").exists()
    with held_demo_folder(tmp_path / "data", fresh=False):
        assert (folder / "postroom.sqlite3").exists()
        with pytest.raises(AlreadyServed), held_demo_folder(tmp_path / "data", fresh=True):
            pass
    with held_demo_folder(tmp_path / "data", fresh=True):
        assert sorted(each.name for each in folder.iterdir()) == ["serve.lock", "this-is-a-demo"]


def test_a_taken_port_is_reported_in_one_line(tmp_path: Path) -> None:
    with running(tmp_path, "demo", "--port", "0", "--json") as process:
        port = announced(process).rsplit(":", 1)[1]
        database = tmp_path / "data" / ".postroom-demo" / "postroom.sqlite3"
        before = database.stat().st_ino
        refused = postroom(tmp_path, "demo", "--port", port)
        assert database.stat().st_ino == before, "the folder of the demo that runs is left alone"
    assert refused.returncode != 0
    assert "Traceback" not in refused.stderr
    assert port in refused.stderr


def test_the_command_line_migrates_checks_and_heals(tmp_path: Path, database_url: str | None) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return postroom(tmp_path, *arguments, database_url=database_url)

    early = run("jobs", "list")
    assert early.returncode == 1
    assert ("postroom migrate" if database_url else "nothing here yet") in early.stderr
    assert run("migrate", "--check").returncode == 1
    assert run("migrate").returncode == 0
    assert run("migrate", "--check").returncode == 0
    checked = run("doctor", "--json")
    checks: list[dict[str, Any]] = [json.loads(line) for line in checked.stdout.splitlines()]
    assert checks
    assert not [check for check in checks if check["verdict"] == "fail"], checks
    missing = run("jobs", "retry", "01a1de5c-09c4-78e3-a216-7adf44d56315")
    assert missing.returncode == 1
    assert "there is no job" in missing.stderr


def test_a_worker_process_starts_and_stops_on_either_database(tmp_path: Path, database_url: str | None) -> None:
    with running(tmp_path, "worker", database_url=database_url) as process:
        for line in process.stderr:
            if "worker.started" in line:
                break
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0


def token(folder: Path, *arguments: str, database_url: str | None = None) -> dict[str, Any]:
    made = postroom(folder, "token", "create", *arguments, "--json", database_url=database_url)
    assert made.returncode == 0, made.stderr
    return json.loads(made.stdout)


async def ingest(http: httpx2.AsyncClient, url: str, secret: str, event: dict[str, Any]) -> httpx2.Response:
    return await http.post(f"{url}/v1/ingest", json=event, headers={"Authorization": f"Bearer {secret}"})


@asynccontextmanager
async def agent_at(url: str, secret: str) -> AsyncGenerator[Client]:
    """A real client of the mcp package."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {secret}"}, timeout=PATIENCE_S) as http,
        Client(
            streamable_http_client(f"{url}/mcp", http_client=http), mode=LATEST_MODERN_VERSION, cache=None
        ) as client,
    ):
        yield client


async def test_serve_takes_in_over_http_hands_out_over_mcp_and_forgets_a_revoked_token(
    tmp_path: Path, database_url: str | None
) -> None:
    made = token(tmp_path, "--role", "connector", "--identity", "webhook:ci", database_url=database_url)
    agents = token(tmp_path, "--role", "agent", database_url=database_url)
    with running(tmp_path, "serve", "--port", "0", "--json", database_url=database_url) as process:
        url = announced(process)
        async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
            accepted = await ingest(http, url, made["token"], envelope("first"))
            assert accepted.status_code == 200, accepted.text
            assert (await http.get(f"{url}/readyz")).json()["status"] == "ready"
            async with agent_at(url, agents["token"]) as agent:
                [message] = (await called(agent, "queue.next", queue="gateway", wait_s=10))["messages"]
                assert message["message_id"] == accepted.json()["request_id"]
                assert message["envelope"]["untrusted"]["payload"]["raw"] == {"number": "first"}
                held = {name: message[name] for name in ("message_id", "lease_token")}
                assert await called(agent, "queue.ack", **held) == {"status": "acked"}
            counted = (await http.get(f"{url}/metrics")).text
            assert (
                'dequeue_by_tier_total{policy_tier="P2",queue_name="gateway",starvation_override="false"} 1' in counted
            )
            revoked = postroom(tmp_path, "token", "revoke", made["id"], database_url=database_url)
            assert revoked.returncode == 0, revoked.stderr
            async with asyncio.timeout(PATIENCE_S):
                answer = await ingest(http, url, made["token"], envelope("late"))
                while answer.status_code == 200:
                    await asyncio.sleep(0.02)
                    answer = await ingest(http, url, made["token"], envelope("late"))
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, "revoked")
        process.send_signal(signal.SIGTERM)
        _, complaints = await asyncio.to_thread(process.communicate, timeout=PATIENCE_S)
    assert process.returncode == 0
    assert "Traceback" not in complaints
    assert made["token"] not in complaints


async def called(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.structured_content
    return result.structured_content


async def test_serve_ends_at_once_though_somebody_waits_for_a_message(tmp_path: Path) -> None:
    agents = token(tmp_path, "--role", "agent")
    with running(tmp_path, "serve", "--port", "0", "--json") as process:
        async with agent_at(announced(process), agents["token"]) as agent:
            # Not `call_tool`, which asks a second thing afterwards, when nobody is there to answer.
            arguments = {"queue": "gateway", "wait_s": LONGEST_WAIT_S}
            asked = types.CallToolRequestParams(name="queue.next", arguments=arguments)
            request = types.CallToolRequest(params=asked)
            asked_at = time.monotonic()
            waiting = asyncio.create_task(agent.session.send_request(request, types.CallToolResult))
            await used(tmp_path, UUID(agents["id"]))
            process.send_signal(signal.SIGTERM)
            _, complaints = await asyncio.to_thread(process.communicate, timeout=PATIENCE_S)
            assert time.monotonic() - asked_at < LONGEST_WAIT_S, "it ended when the waiting did"
            assert (await waiting).structured_content == {"messages": []}
    assert process.returncode == 0
    assert "Traceback" not in complaints


async def used(folder: Path, token_id: UUID) -> None:
    """Waits until the token was used: whoever holds it is through the door."""
    database = connect_database(folder / "data", None)
    try:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                tokens = {each.id: each for each in await database.run(list_tokens())}
                if tokens[token_id].last_used_at is not None:
                    return
                await asyncio.sleep(0.02)
    finally:
        await database.close()
