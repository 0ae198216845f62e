"""The switchboard over HTTP: `POST /v1/ingest` for producers without MCP, and MCP at `/mcp`.

Both are plain ASGI: they serve thousands of requests a second, and a framework would cost more than the work itself.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Collection
from typing import Any, cast

import structlog
from mcp import types
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from postroom.core.errors import AccessRefused, BadInput, StoreError
from postroom.core.roles import Principal
from postroom.intake.intake import LARGEST_BATCH
from postroom.interfaces.http.access import require_role
from postroom.interfaces.http.answers import json_of
from postroom.interfaces.http.door import Door, HttpRequestRefused, RawHeaders, host_patterns
from postroom.interfaces.http.json_http import MIB, check_length, json_body, send_answer, send_json
from postroom.interfaces.http.mcp.mcp_server import PRINCIPAL, RECEIVE, build_server
from postroom.interfaces.http.mcp.registry import TOOLS_BY_NAME
from postroom.interfaces.http.messages import MESSAGES, message_routes
from postroom.interfaces.http.services import Services
from postroom.operations.mail.ingest import IngestAnswer, IngestBatchAnswer, ingest_many, ingest_one
from postroom.operations.problems import RETRY_AFTER_S, problem_of

log = structlog.get_logger()

LARGEST_BODY = 10 * MIB
LARGEST_MCP_BODY = 16 * MIB
INGEST = TOOLS_BY_NAME["ingest"]


class IngestEndpoint:
    """`POST /v1/ingest`: one envelope, or an array of up to 100."""

    def __init__(self, services: Services, door: Door) -> None:
        self._intake = services.intake
        self._refusals = services.parts.refusals
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send_answer(send, self._admit_and_deliver(scope, receive), "ingest.failed")

    async def _admit_and_deliver(self, scope: Scope, receive: Receive) -> object:
        return await self._deliver(await self._door.admit(scope), scope["headers"], receive)

    async def _deliver(self, principal: Principal, headers: RawHeaders, receive: Receive) -> object:
        try:
            require_role(principal, INGEST)
            return await self._ingest(principal, await json_body(headers, receive, LARGEST_BODY))
        except AccessRefused as refused:
            await self._refusals.note(principal, INGEST.name, refused)
            raise

    async def _ingest(self, principal: Principal, content: Any) -> object:
        if not isinstance(content, list):
            return json_of(IngestAnswer, await ingest_one(principal, self._intake, content))
        items = cast("list[Any]", content)
        if not 1 <= len(items) <= LARGEST_BATCH:
            raise BadInput("body", f"contains {len(items)} envelopes", f"send 1 to {LARGEST_BATCH} at once")
        return json_of(IngestBatchAnswer, await ingest_many(principal, self._intake, self._refusals, items))


class McpEndpoint:
    """`/mcp`: MCP over streamable HTTP, stateless: every request brings its own token."""

    def __init__(self, door: Door, sessions: StreamableHTTPSessionManager, closing: asyncio.Event) -> None:
        self.door = door
        self._sessions = sessions
        self._closing = closing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            principal = await self.door.admit(scope)
            check_length(scope["headers"], LARGEST_MCP_BODY)
        except HttpRequestRefused as away:
            await send_json(send, away.status, _json_rpc(str(away), away.form), away.headers)
        except StoreError as error:
            log.error("mcp.nobody_known", error=type(error).__name__)
            retry = (b"retry-after", b"%d" % RETRY_AFTER_S)
            problem = problem_of(error)
            await send_json(send, 503, _json_rpc(problem.text, problem.form), [retry])
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


DOORS = ("/v1/ingest", "/mcp", MESSAGES)


def switchboard_routes(services: Services, mcp: McpEndpoint) -> list[Route]:
    """Return the HTTP routes of the switchboard."""
    ingest, tools, _ = DOORS
    routes = [Route(ingest, IngestEndpoint(services, mcp.door)), Route(tools, mcp)]
    return [*routes, *message_routes(services, mcp.door)]


def _json_rpc(message: str, data: object) -> object:
    """Return a refusal in the form that MCP clients understand. Its id is null, since the request was not parsed."""
    return {"jsonrpc": "2.0", "id": None, "error": {"code": types.INVALID_REQUEST, "message": message, "data": data}}
