"""No access without a valid token, under a foreign host name, or from a foreign page."""

import asyncio
from typing import Any

import httpx2
import pytest

from postroom.core.metrics import ACCESS_REFUSED
from postroom.store.engine.ids import new_id
from postroom.store.people.audit import Signature
from postroom.store.people.tokens import read_token, revoke_token
from support.clocks import ManualClock
from support.patience import PATIENCE_S
from support.switchboard import Served, envelope
from support.until import until

DOORS = ("/mcp", "/v1/ingest")
FOREIGN_ORIGINS = (
    "https://evil.example",
    "http://127.0.0.1.evil.example",
    "http://localhost@evil.example",
    "http://localhost:8025/",
    "file://localhost",
    "null",
    "",
    "http://[",
)
VERSION = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


def list_tools(path: str) -> Any:
    """What to send that would be answered with 200."""
    if path == "/v1/ingest":
        return envelope()
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": VERSION}}


async def knock(switchboard: Served, path: str, headers: dict[str, str], content: Any = None) -> httpx2.Response:
    era = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"} if path == "/mcp" else {}
    async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        return await http.post(
            switchboard.address + path,
            json=content or list_tools(path),
            headers={"Accept": "application/json, text/event-stream", **era, **headers},
        )


def problem_in(answer: httpx2.Response) -> dict[str, Any]:
    """What was said, in either form."""
    error = answer.json()["error"]
    return error.get("data") or error


@pytest.mark.parametrize("path", DOORS)
async def test_a_live_token_opens_the_door(switchboard: Served, path: str):
    token = await switchboard.token("admin")
    assert (await knock(switchboard, path, {"Authorization": f"Bearer {token}"})).status_code == 200
    assert (await knock(switchboard, path, {"Authorization": f"bearer  {token}"})).status_code == 200


@pytest.mark.parametrize("path", DOORS)
@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (None, "no_token"),
        ("", "no_token"),
        ("Bearer", "no_token"),
        ("Basic YWRtaW46YWRtaW4=", "no_token"),
        ("Bearer nonsense", "bad_token"),
        ("Bearer postroom_0_x", "bad_token"),
        ("Bearer postroom_" + "0" * 32 + "_" + "x" * 43, "bad_token"),
        ("Bearer postroom_" + "z" * 10_000, "bad_token"),
        ("Bearer {token}x", "bad_token"),
        ("Bearer {token},{token}", "bad_token"),
        ("Token {token}", "no_token"),
    ],
)
async def test_no_other_token_does(switchboard: Served, path: str, header: str | None, reason: str):
    token = await switchboard.token("admin")
    headers = {} if header is None else {"Authorization": header.format(token=token)}
    answer = await knock(switchboard, path, headers)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert problem_in(answer)["code"] == reason
    assert "postroom token create" in problem_in(answer)["remedy"]
    assert switchboard.services.tally.counts_of(ACCESS_REFUSED) == {(reason,): 1}
    assert token not in answer.text


@pytest.mark.parametrize("path", DOORS)
async def test_a_secret_of_another_token_opens_nothing(switchboard: Served, path: str):
    mine, yours = await switchboard.token("agent"), await switchboard.token("admin")
    mixed = yours[: len("postroom_") + 32] + mine[len("postroom_") + 32 :]
    answer = await knock(switchboard, path, {"Authorization": f"Bearer {mixed}"})
    assert (answer.status_code, problem_in(answer)["code"]) == (401, "bad_token")


@pytest.mark.parametrize("path", DOORS)
async def test_two_tokens_at_once_open_nothing(switchboard: Served, path: str):
    token = await switchboard.token("admin")
    headers = [("Authorization", f"Bearer {token}"), ("Authorization", f"Bearer {token}")]
    async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        answer = await http.post(switchboard.address + path, json=list_tools(path), headers=headers)
    assert (answer.status_code, problem_in(answer)["code"]) == (401, "bad_token")


@pytest.mark.parametrize("path", DOORS)
async def test_an_expired_token_opens_nothing(switchboard: Served, clock: ManualClock, path: str):
    token = await switchboard.token("admin", expires_at=clock.now.replace(hour=9))
    headers = {"Authorization": f"Bearer {token}"}
    assert (await knock(switchboard, path, headers)).status_code == 200
    clock.forward(3600)
    answer = await knock(switchboard, path, headers)
    assert (answer.status_code, problem_in(answer)["code"]) == (401, "expired")


@pytest.mark.parametrize("path", DOORS)
async def test_a_revoked_token_opens_nothing_a_second_later(switchboard: Served, clock: ManualClock, path: str):
    token = await switchboard.token("admin")
    headers = {"Authorization": f"Bearer {token}"}
    assert (await knock(switchboard, path, headers)).status_code == 200
    claimed = read_token(token)
    assert claimed is not None
    await switchboard.services.database.run(revoke_token(claimed.id, Signature(new_id(), "test", "admin"), clock()))
    clock.forward(1)
    answer = await knock(switchboard, path, headers)
    assert (answer.status_code, problem_in(answer)["code"]) == (401, "revoked")


async def test_who_waits_with_a_token_gets_nothing_that_arrives_after_its_end(switchboard: Served, clock: ManualClock):
    services, token = switchboard.services, await switchboard.token("agent")
    claimed = read_token(token)
    assert claimed is not None

    async def looked() -> bool:
        return "gateway" in services.buffer.__dict__["_found_empty"]

    async with switchboard.client(token) as agent:
        await agent.list_tools()  # else the client asks for them afterwards, to check the answer
        waiting = asyncio.create_task(agent.call_tool("queue.next", {"queue": "gateway", "wait_s": 60}))
        await until(services.database, looked, bool)
        await services.database.run(revoke_token(claimed.id, Signature(new_id(), "test", "admin"), clock()))
        assert (await waiting).structured_content == {"messages": []}


@pytest.mark.parametrize("path", DOORS)
async def test_a_foreign_host_is_refused_even_with_a_token(switchboard: Served, path: str):
    token = await switchboard.token("admin")
    for host in (
        "evil.example",
        "evil.example:8025",
        "127.0.0.1.evil.example",
        "localhost@evil.example",
        "localhost:x",
    ):
        answer = await knock(switchboard, path, {"Authorization": f"Bearer {token}", "Host": host})
        assert (host, answer.status_code, problem_in(answer)["code"]) == (host, 421, "foreign_host")


@pytest.mark.parametrize("path", DOORS)
async def test_our_own_names_are_answered_with_any_port(switchboard: Served, path: str):
    token = await switchboard.token("admin")
    for host in ("localhost", "localhost:9", "127.0.0.1:1", "[::1]:8025"):
        answer = await knock(switchboard, path, {"Authorization": f"Bearer {token}", "Host": host})
        assert (host, answer.status_code) == (host, 200)


@pytest.mark.parametrize("path", DOORS)
async def test_a_foreign_page_is_refused_even_with_a_token(switchboard: Served, path: str):
    token = await switchboard.token("admin")
    for origin in FOREIGN_ORIGINS:
        answer = await knock(switchboard, path, {"Authorization": f"Bearer {token}", "Origin": origin})
        assert (origin, answer.status_code, problem_in(answer)["code"]) == (origin, 403, "foreign_origin")
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("path", DOORS)
async def test_a_page_of_our_own_is_answered(switchboard: Served, path: str):
    token = await switchboard.token("admin")
    answer = await knock(switchboard, path, {"Authorization": f"Bearer {token}", "Origin": "http://localhost:8025"})
    assert answer.status_code == 200


@pytest.mark.parametrize("path", DOORS)
async def test_only_posts_are_answered(switchboard: Served, path: str):
    token = await switchboard.token("admin")
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE_S) as http:
        for method in ("GET", "DELETE", "PUT", "OPTIONS"):
            answer = await http.request(method, switchboard.address + path)
            assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")


async def test_there_is_no_session_that_another_could_take_over(switchboard: Served):
    """The handshake gives out no session id, and one that is made up makes nobody anybody else."""
    admin, agent = await switchboard.token("admin"), await switchboard.token("agent")
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    headers = {"Accept": "application/json, text/event-stream"}
    async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S) as http:

        async def ask(token: str, method: str, params: dict[str, Any], session: str | None) -> httpx2.Response:
            named = {} if session is None else {"Mcp-Session-Id": session}
            return await http.post(
                f"{switchboard.address}/mcp",
                json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params},
                headers={"Authorization": f"Bearer {token}", **named},
            )

        opened = await ask(admin, "initialize", hello, None)
        assert opened.status_code == 200
        assert "mcp-session-id" not in opened.headers
        for session in (None, "f" * 32, "admin"):
            as_admin = await ask(admin, "tools/list", {}, session)
            as_agent = await ask(agent, "tools/list", {}, session)
            assert "queue.replay" in as_admin.text
            assert "queue.replay" not in as_agent.text
            assert (await ask("nobody", "tools/list", {}, session)).status_code == 401


async def test_those_who_call_at_the_same_time_are_not_mixed_up(switchboard: Served):
    """On one connection, too: who calls is in the request."""
    tokens = {role: await switchboard.token(role) for role in ("agent", "admin", "dashboard")}
    limits = httpx2.Limits(max_connections=2)
    async with httpx2.AsyncClient(limits=limits, timeout=PATIENCE_S) as http:
        for _round in range(10):
            for role, token in tokens.items():
                answer = await http.post(
                    f"{switchboard.address}/mcp",
                    json=list_tools("/mcp"),
                    headers={
                        "Authorization": f"Bearer {token}",
                        "Accept": "application/json",
                        "MCP-Protocol-Version": "2026-07-28",
                        "Mcp-Method": "tools/list",
                    },
                )
                names = {tool["name"] for tool in answer.json()["result"]["tools"]}
                assert ("queue.replay" in names, "connector.list" in names, "queue.next" in names) == (
                    role == "admin",
                    role in ("admin", "dashboard"),
                    role in ("admin", "agent"),
                )
