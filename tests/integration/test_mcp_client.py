"""A whole loop of an agent with the mcp package's own client: over HTTP, in both protocols, and in memory."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import MCPError
from mcp.client import Client
from mcp.types import CallToolResult, TextContent

from postroom.core.roles import Principal, Role
from postroom.interfaces.http.mcp.mcp_server import build_server
from postroom.interfaces.http.mcp.registry import TOOLS_BY_NAME
from postroom.interfaces.http.services import Services
from postroom.store.engine.database import Database
from postroom.store.engine.opening import open_database
from support.clocks import ManualClock
from support.patience import PATIENCE_S
from support.switchboard import Served, envelope, mail, served, services_on

WAYS = ("http", "http, older protocol", "in memory")
CONNECTOR = Principal(Role.CONNECTOR, "webhook:ci")


@pytest.fixture
async def switchboard(database: Database, clock: ManualClock) -> AsyncIterator[Served]:
    async with served(services_on(database, clock)) as running:
        yield running


@pytest.fixture
async def switchboard_on_sqlite(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Services]:
    """For what does not depend on the database."""
    database = await open_database(tmp_path, None)
    yield services_on(database, clock)
    await database.close()


@pytest.fixture
async def switchboard_served(switchboard_on_sqlite: Services) -> AsyncIterator[Served]:
    async with served(switchboard_on_sqlite) as running:
        yield running


@contextlib.asynccontextmanager
async def client_of(switchboard: Served, way: str, principal: Principal) -> AsyncGenerator[Client]:
    if way == "in memory":
        async with Client(build_server(switchboard.services, principal)) as client:
            yield client
    else:
        token = await switchboard.token(principal.role.value, principal.identity)
        async with switchboard.client(token, "auto" if way == "http" else "legacy") as client:
            yield client


async def ask(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.structured_content
    assert json.loads(text_of(result)) == result.structured_content
    return result.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    problem = result.structured_content
    assert text_of(result) == f"{problem['field']}: {problem['problem']}; {problem['remedy']}"
    return problem


def text_of(result: CallToolResult) -> str:
    content = result.content[0]
    assert isinstance(content, TextContent)
    return content.text


class Watched:
    """Tells when a consumer has looked, found nothing, and begun to wait; and when it has given up."""

    def __init__(self, services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waits, self.left = asyncio.Event(), asyncio.Event()
        lease, next_ = services.buffer.lease, services.buffer.next

        async def watched_lease(*given: Any) -> Any:
            found = await lease(*given)
            if not found:
                self.waits.set()
            return found

        async def watched_next(*given: Any) -> Any:
            try:
                return await next_(*given)
            finally:
                self.left.set()

        monkeypatch.setattr(services.buffer, "lease", watched_lease)
        monkeypatch.setattr(services.buffer, "next", watched_next)


@pytest.mark.parametrize("way", WAYS)
async def test_an_agents_round(switchboard: Served, way: str, monkeypatch: pytest.MonkeyPatch):
    watched = Watched(switchboard.services, monkeypatch)
    async with (
        client_of(switchboard, way, CONNECTOR) as connector,
        client_of(switchboard, way, Principal(Role.AGENT)) as agent,
    ):
        waiting = asyncio.create_task(ask(agent, "queue.next", queue="gateway", wait_s=60))
        await watched.waits.wait()
        accepted = await ask(connector, "ingest", envelope=envelope("first"))
        [message] = (await waiting)["messages"]
        assert message["message_id"] == accepted["request_id"]
        assert message["envelope"]["untrusted"]["payload"]["raw"] == {"number": "first"}
        assert (message["tier"], message["promoted_from"], message["attempts"]) == ("P2", None, 1)

        held = {"message_id": message["message_id"], "lease_token": message["lease_token"]}
        assert await ask(agent, "queue.nack", **held, reason="not now") == {"status": "returned"}
        assert (await refused(agent, "queue.ack", **held))["code"] == "lease_lost"

        [again] = (await ask(agent, "queue.next", queue="gateway"))["messages"]
        assert (again["message_id"], again["attempts"]) == (message["message_id"], 2)
        assert again["lease_token"] != message["lease_token"]
        [tier] = [each for each in await tiers(agent, "gateway") if each["tier"] == "P2"]
        assert (tier["waiting"], tier["leased"], tier["guard"]) == (0, 1, 10)
        held = {"message_id": again["message_id"], "lease_token": again["lease_token"]}
        assert await ask(agent, "queue.ack", **held) == {"status": "acked"}
        assert (await ask(agent, "queue.next", queue="gateway"))["messages"] == []

        assert (await ask(connector, "ingest", envelope=envelope("first"))) == {**accepted, "duplicate": True}


async def tiers(client: Client, queue: str) -> list[dict[str, Any]]:
    [found] = [each for each in (await ask(client, "queue.stats"))["queues"] if each["queue"] == queue]
    return found["tiers"]


async def test_what_waited_long_is_promoted_and_what_is_dull_is_summed_up(switchboard: Served, clock: ManualClock):
    async with (
        client_of(switchboard, "http", CONNECTOR) as connector,
        client_of(switchboard, "http", Principal(Role.AGENT)) as agent,
    ):
        await ask(connector, "ingest", envelope=envelope("old"))
        clock.forward(301)
        dull = [envelope(number, event={"kind": "test.passed"}) for number in range(3)]
        members = [each["request_id"] for each in (await ask(connector, "ingest.batch", items=dull))["results"]]

        peeked = (await ask(agent, "queue.peek", queue="gateway", max=2))["messages"]
        assert [(each["tier"], each["kind"], each["waited_s"]) for each in peeked] == [
            ("P2", "deploy.done", 301),
            ("P3", "test.passed", 0),
        ]
        first, summary = (await ask(agent, "queue.next", queue="gateway", max=10))["messages"]
        assert (first["tier"], first["promoted_from"], first["members"]) == ("P1", "P2", [])
        assert (summary["tier"], summary["members"], summary["member_count"]) == ("P3", members, 3)

        held = [{name: each[name] for name in ("message_id", "lease_token")} for each in (first, summary)]
        lost = {"message_id": members[0], "lease_token": first["lease_token"]}
        results = (await ask(agent, "queue.ack", items=[*held, lost]))["results"]
        assert [each["status"] for each in results] == ["acked", "acked", "lost"]
        assert results[2]["error"]["code"] == "lease_lost"
        assert sum(each["waiting"] + each["leased"] for each in await tiers(agent, "gateway")) == 0


async def test_an_expired_lease_is_lost_and_the_message_comes_again(switchboard: Served, clock: ManualClock):
    await switchboard.services.intake.ingest(envelope())
    async with client_of(switchboard, "http", Principal(Role.AGENT)) as agent:
        [message] = (await ask(agent, "queue.next", queue="gateway"))["messages"]
        clock.forward(301)
        held = {"message_id": message["message_id"], "lease_token": message["lease_token"]}
        problem = await refused(agent, "queue.ack", **held)
        assert (problem["code"], problem["field"]) == ("lease_lost", "lease_token")
        assert "queue.next" in problem["remedy"]
        await switchboard.services.buffer.sweep()
        [again] = (await ask(agent, "queue.next", queue="gateway"))["messages"]
        assert again["message_id"] == message["message_id"]


async def test_past_events_are_handed_out_again(switchboard: Served, clock: ManualClock):
    async with client_of(switchboard, "http", Principal(Role.ADMIN)) as admin:
        await ask(admin, "ingest.batch", items=[envelope(1), envelope(2, event={"kind": "deploy.failed"})])
        for message in (await ask(admin, "queue.next", queue="gateway", max=10))["messages"]:
            held = {"message_id": message["message_id"], "lease_token": message["lease_token"]}
            await ask(admin, "queue.ack", **held)
        clock.forward(60)
        since = {"queue": "gateway", "since": "2026-11-15T07:00:00Z"}
        replayed = await ask(admin, "queue.replay", **since, kinds=["deploy.failed"])
        assert replayed["replayed"] == 1
        [message] = (await ask(admin, "queue.next", queue="gateway", max=10))["messages"]
        assert message["message_id"] in replayed["message_ids"]
        assert message["envelope"]["untrusted"]["event"]["external_event_id"] == "event-2"


async def test_nothing_is_leased_for_a_client_that_has_hung_up(switchboard: Served, monkeypatch: pytest.MonkeyPatch):
    watched = Watched(switchboard.services, monkeypatch)
    async with client_of(switchboard, "http", Principal(Role.AGENT)) as agent:
        waiting = asyncio.create_task(ask(agent, "queue.next", queue="gateway", wait_s=60))
        await watched.waits.wait()
        waiting.cancel()
        await asyncio.wait({waiting})
        await watched.left.wait()
        await switchboard.services.intake.ingest(envelope())
        [tier] = [each for each in await tiers(agent, "gateway") if each["tier"] == "P2"]
        assert (tier["waiting"], tier["leased"]) == (1, 0)


@pytest.mark.parametrize("era", ["2026-07-28", "2025-11-25"])
async def test_a_wait_ends_with_its_connection(switchboard: Served, era: str, monkeypatch: pytest.MonkeyPatch):
    """As when the agent is killed, or its machine is: no goodbye, in either protocol."""
    watched = Watched(switchboard.services, monkeypatch)
    meta = {"io.modelcontextprotocol/protocolVersion": era, "io.modelcontextprotocol/clientCapabilities": {}}
    params: dict[str, Any] = {"name": "queue.next", "arguments": {"queue": "gateway", "wait_s": 60}}
    params |= {"_meta": meta} if era == "2026-07-28" else {}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {await switchboard.token('agent')}\r\n"
        f"Content-Type: application/json\r\nAccept: application/json\r\nMCP-Protocol-Version: {era}\r\n"
        f"Mcp-Method: tools/call\r\nMcp-Name: queue.next\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    _, writer = await asyncio.open_connection("127.0.0.1", int(switchboard.address.rpartition(":")[2]))
    writer.write((head + body).encode())
    await watched.waits.wait()
    writer.transport.abort()
    await watched.left.wait()


async def test_whoever_waits_is_answered_when_the_server_stops(switchboard: Served, monkeypatch: pytest.MonkeyPatch):
    watched = Watched(switchboard.services, monkeypatch)
    async with client_of(switchboard, "http", Principal(Role.AGENT)) as agent:
        waiting = asyncio.create_task(ask(agent, "queue.next", queue="gateway", wait_s=60))
        await watched.waits.wait()
        switchboard.mcp.stop_waiting()
        assert await waiting == {"messages": []}


@pytest.mark.parametrize(
    ("tool", "arguments", "field", "remedy"),
    [
        ("queue.next", {"queue": "nowhere"}, "queue", "use one of email, gateway"),
        ("queue.next", {}, "queue", "`queue.stats` lists them"),
        ("queue.next", {"queue": "gateway", "max": 0}, "max", "1 to 100"),
        ("queue.next", {"queue": "gateway", "max": 101}, "max", "1 to 100"),
        ("queue.next", {"queue": "gateway", "wait_s": 61}, "wait_s", "0 to 60"),
        ("queue.next", {"queue": "gateway", "wait": 1}, "wait", "did you mean 'wait_s'?"),
        ("queue.ack", {"message_id": "x", "lease_token": "y"}, "message_id", "as `queue.next` gave it"),
        ("queue.ack", {}, "message_id", "give both for one message, or only items for several"),
        ("queue.ack", {"items": []}, "items", "1 to 100"),
        ("queue.peek", {"queue": "nowhere"}, "queue", "use one of email, gateway"),
        ("queue.replay", {"queue": "gateway", "since": "2026-11-15T08:00:00"}, "since", "add an offset"),
        ("queue.replay", {"queue": "nowhere", "since": "2026-11-15T08:00:00Z"}, "queue", "use one of email, gateway"),
        ("ingest.batch", {"items": []}, "items", "1 to 100"),
        ("ingest.batch", {"items": [{}] * 101}, "items", "1 to 100"),
        ("ingest", {}, "envelope", "ingest.v1"),
        ("queue.next", {"queue": "\ud800"}, "queue", "`queue.stats` lists them"),
        ("queue.ack", {"items": [{"message_id": 1}]}, "items.0.message_id", "1 to 100"),
    ],
)
async def test_a_wrong_argument_is_named_with_what_to_do(
    switchboard_on_sqlite: Services, tool: str, arguments: dict[str, Any], field: str, remedy: str
):
    async with Client(build_server(switchboard_on_sqlite, Principal(Role.ADMIN))) as admin:
        problem = await refused(admin, tool, **arguments)
    assert (problem["code"], problem["field"]) == ("bad_input", field)
    assert remedy in problem["remedy"]


async def test_a_tool_that_does_not_exist_is_answered_with_those_that_do(switchboard_on_sqlite: Services):
    async with Client(build_server(switchboard_on_sqlite, Principal(Role.AGENT))) as agent:
        with pytest.raises(
            MCPError, match=r"no tool 'queue\.drop'; yours are actions\.list, .*queue\.ack, queue\.nack, queue\.next"
        ):
            await agent.call_tool("queue.drop", {})


async def test_an_error_inside_a_tool_tells_nothing_and_ends_nothing(
    switchboard: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    async def broken(*_given: Any) -> None:
        raise RuntimeError("canary: secret text of a mail")

    async with client_of(switchboard, "http", Principal(Role.ADMIN)) as admin:
        with monkeypatch.context() as patched:
            patched.setattr(switchboard.services.intake, "ingest", broken)
            result = await admin.call_tool("ingest", {"envelope": envelope()})
        assert result.is_error
        assert result.structured_content["code"] == "internal"
        assert "canary" not in str(result) + caplog.text
        assert (await ask(admin, "ingest", envelope=envelope()))["status"] == "accepted"


@pytest.mark.parametrize("name", [r"\ud800", "x" * 2**20], ids=["half a character", "megabytes"])
async def test_what_is_repeated_of_bad_input_is_cut_and_well_formed(switchboard_served: Served, name: str):
    """Half a surrogate pair passes as JSON text and breaks what writes it again. No client would send it by itself."""
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    params = {"name": "ingest.batch", "arguments": {"items": [{**envelope(), "NAME": 1}]}, "_meta": meta}
    headers = {
        "Authorization": f"Bearer {await switchboard_served.token('admin')}",
        "Content-Type": "application/json",
        "Accept": "application/json",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "ingest.batch",
    }
    content = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).replace("NAME", name)
    async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        answer = await http.post(f"{switchboard_served.address}/mcp", content=content, headers=headers)
    [refused] = answer.json()["result"]["structuredContent"]["results"]
    assert refused["error"]["code"] == "bad_input"
    assert len(refused["error"]["field"]) < 5000


async def test_every_tool_says_what_it_is_takes_and_answers(switchboard_on_sqlite: Services):
    listed: dict[str, Any] = {}
    for role in Role:
        async with Client(build_server(switchboard_on_sqlite, Principal(role, "webhook:ci"))) as client:
            listed |= {tool.name: tool for tool in (await client.list_tools()).tools}
    assert listed.keys() == TOOLS_BY_NAME.keys()
    for tool in listed.values():
        assert len(tool.description) > 40
        assert tool.input_schema["type"] == tool.output_schema["type"] == "object"
        assert tool.input_schema["additionalProperties"] is False
        assert all(each.get("description") for each in tool.input_schema["properties"].values()), tool.name
    hints = {name: tool.annotations for name, tool in listed.items()}
    reading = {name for name, each in hints.items() if each.read_only_hint}
    assert reading == {
        *("backfill.list", "connector.list", "contacts.export", "filters.export", "queue.peek", "queue.stats"),
        *("mail.search", "mail.read", "actions.list", "decisions.explain", "mutations.status", "outbound.status"),
    }
    destructive = {name for name, each in hints.items() if each.destructive_hint}
    assert destructive == {"backfill.cancel", "outbound.cancel", "queue.ack"}


async def test_mail_for_an_account_that_does_not_exist_is_refused_by_both_tools(switchboard_served: Served):
    identity = "gmail:user:nobody@example.com"
    given = mail(1, source={"channel": "email", "provider": "gmail", "endpoint_identity": identity})
    async with client_of(switchboard_served, "http", Principal(Role.CONNECTOR, identity)) as client:
        problem = await refused(client, "ingest", envelope=given)
        answer = await ask(client, "ingest.batch", items=[given])
    assert (problem["code"], problem["field"]) == ("account_unusable", "source.endpoint_identity")
    assert "postroom account add" in problem["remedy"]
    assert [each["error"] for each in answer["results"]] == [problem]
