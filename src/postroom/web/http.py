"""The switchboard over HTTP: `POST /v1/ingest` for producers without MCP, and MCP at `/mcp`.

Both are plain ASGI: they serve thousands of requests a second, and a framework would cost more than the work itself.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Collection, Iterable
from typing import Any, cast

import orjson
import structlog
from mcp import types
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import ClientDisconnect
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from postroom.core.errors import BadInput, StoreError
from postroom.core.roles import Principal
from postroom.core.strict import exact_json
from postroom.http_server.body import read_body
from postroom.switchboard.access import note_refusal, require_role
from postroom.switchboard.problems import RETRY_AFTER_S, UNAVAILABLE, AccessRefused, Problem, is_expected, problem_of
from postroom.switchboard.services import Services
from postroom.switchboard.tools.ingest import ingest, ingest_many, ingest_one
from postroom.switchboard.tools.tool import MOST_IN_BATCH, Call
from postroom.web.door import Door, RawHeaders, RequestRefused, host_patterns, values_of
from postroom.web.mcp_server import PRINCIPAL, RECEIVE, build_server

log = structlog.get_logger()

MIB = 1024 * 1024
LARGEST_BODY = 10 * MIB
LARGEST_MCP_BODY = 16 * MIB
STATUSES = {
    "bad_input": 400,
    "refused": 403,
    "not_found": 404,
    "account_unusable": 409,
    "conflict": 409,
    "lease_lost": 409,
    "internal": 500,
    "no_room": 503,
    "unavailable": 503,
}
JSON = (b"content-type", b"application/json")


class IngestEndpoint:
    """`POST /v1/ingest`: one envelope, or an array of up to 100."""

    def __init__(self, services: Services, door: Door) -> None:
        self._services = services
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            principal = await self._door.admit(scope)
            answer = await self._deliver(principal, scope["headers"], receive)
        except RequestRefused as away:
            await _send_json(send, away.status, {"error": away.form}, away.headers)
        except ClientDisconnect:
            return
        except Exception as error:
            if not is_expected(error):
                log.error("ingest.failed", error=type(error).__name__)
            await _send_problem(send, problem_of(error))
        else:
            await _send_json(send, 200, answer)

    async def _deliver(self, principal: Principal, headers: RawHeaders, receive: Receive) -> object:
        try:
            require_role(principal, ingest)
            return await self._ingest(Call(self._services, principal), _parsed(await _body(headers, receive)))
        except AccessRefused as refused:
            await note_refusal(self._services, principal, ingest.name, refused)
            raise

    async def _ingest(self, call: Call, content: Any) -> object:
        if not isinstance(content, list):
            return await ingest_one(call, content)
        items = cast("list[Any]", content)
        if not 1 <= len(items) <= MOST_IN_BATCH:
            raise BadInput("body", f"contains {len(items)} envelopes", f"send 1 to {MOST_IN_BATCH} at once")
        return await ingest_many(call, items)


class McpEndpoint:
    """`/mcp`: MCP over streamable HTTP, stateless: every request brings its own token."""

    def __init__(self, door: Door, sessions: StreamableHTTPSessionManager, closing: asyncio.Event) -> None:
        self.door = door
        self._sessions = sessions
        self._closing = closing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            principal = await self.door.admit(scope)
            _check_length(scope["headers"], LARGEST_MCP_BODY)
        except RequestRefused as away:
            await _send_json(send, away.status, _json_rpc(str(away), away.form), away.headers)
        except StoreError as error:
            log.error("mcp.nobody_known", error=type(error).__name__)
            retry = (b"retry-after", b"%d" % RETRY_AFTER_S)
            await _send_json(send, 503, _json_rpc(UNAVAILABLE.text, UNAVAILABLE.form), [retry])
        else:
            await self._sessions.handle_request({**scope, PRINCIPAL: principal, RECEIVE: receive}, receive, send)

    def stop_waiting(self) -> None:
        """End long polls now, without a message, since the server is about to stop."""
        self._closing.set()


@contextlib.asynccontextmanager
async def running_mcp(services: Services, allowed_hosts: Collection[str]) -> AsyncGenerator[McpEndpoint]:
    """Run the MCP endpoint during the block. `allowed_hosts` are names without port."""
    closing = asyncio.Event()
    hosts, origins = host_patterns(allowed_hosts)
    sessions = StreamableHTTPSessionManager(
        app=build_server(services, closing=closing),
        json_response=True,
        stateless=True,
        max_request_body_size=LARGEST_MCP_BODY,
        security_settings=TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins),
    )
    async with sessions.run():
        try:
            yield McpEndpoint(Door(services, allowed_hosts), sessions, closing)
        finally:
            closing.set()


DOORS = ("/v1/ingest", "/mcp")


def switchboard_routes(services: Services, mcp: McpEndpoint) -> list[Route]:
    """Return the HTTP routes of the switchboard."""
    ingest, tools = DOORS
    return [Route(ingest, IngestEndpoint(services, mcp.door)), Route(tools, mcp)]


async def _body(headers: RawHeaders, receive: Receive) -> bytearray:
    """Read the whole body; refuse it as soon as it is known to be too large."""
    kinds = values_of(headers, b"content-type")
    if len(kinds) != 1 or kinds[0].partition(";")[0].strip().lower() != "application/json":
        raise RequestRefused(
            415, "bad_type", "content-type", "is not application/json", "send JSON, with this header saying so"
        )
    _check_length(headers, LARGEST_BODY)
    body = await read_body(receive, LARGEST_BODY)
    if body is None:
        raise _too_large(LARGEST_BODY)
    return body


def _check_length(headers: RawHeaders, largest: int) -> None:
    declared = values_of(headers, b"content-length")
    if declared and declared[0].isdecimal() and (len(declared[0]) > 15 or int(declared[0]) > largest):
        raise _too_large(largest)


def _too_large(largest: int) -> RequestRefused:
    problem, remedy = f"is over {largest // MIB} MiB", "send fewer at once, without large attachments"
    return RequestRefused(413, "too_large", "body", problem, remedy)


def _parsed(body: bytearray) -> Any:
    try:
        return exact_json(body)
    except orjson.JSONDecodeError as error:
        # The message names the position and the kind of mistake, and never quotes the body.
        raise BadInput("body", f"is not JSON: {error}", "send one envelope, or an array of them, in UTF-8") from None


def _json_rpc(message: str, data: object) -> object:
    """Return a refusal in the form that MCP clients understand. Its id is null, since the request was not parsed."""
    return {"jsonrpc": "2.0", "id": None, "error": {"code": types.INVALID_REQUEST, "message": message, "data": data}}


async def _send_problem(send: Send, problem: Problem) -> None:
    again = problem.retry_after_s
    headers = [] if again is None else [(b"retry-after", b"%d" % max(1, round(again)))]
    await _send_json(send, STATUSES[problem.code], {"error": problem.form}, headers)


async def _send_json(send: Send, status: int, content: object, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
    body = orjson.dumps(content)
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": [JSON, length, *headers]})
    await send({"type": "http.response.body", "body": body})
