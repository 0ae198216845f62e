"""Mail of senders over HTTP: `POST /v1/messages`, and `GET` and `DELETE` of `/v1/messages/{id}`.

These are the tools `outbound.submit`, `outbound.status` and `outbound.cancel` for programs without MCP. The header
`Idempotency-Key` makes it safe to repeat a `POST`.
"""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from postroom.core.errors import AccessRefused, BadInput
from postroom.interfaces.argument_forms import read_arguments
from postroom.interfaces.http.access import require_role
from postroom.interfaces.http.door import Door, RawHeaders, values_of
from postroom.interfaces.http.json_http import MIB, json_body, send_answer
from postroom.interfaces.http.mcp.outbound import (
    MailArguments,
    SubmitArguments,
    outbound_cancel,
    outbound_status,
    outbound_submit,
    submit,
)
from postroom.interfaces.http.mcp.tool import Call, Tool
from postroom.interfaces.http.mcp.untrusted import cleaned
from postroom.interfaces.http.services import Services

MESSAGES = "/v1/messages"
LARGEST_BODY = 15 * MIB


class MessagesEndpoint:
    """The mail of the sender that a token is bound to."""

    def __init__(self, services: Services, door: Door) -> None:
        self._services = services
        self._door = door

    async def submit(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._answer(scope, receive, send, outbound_submit, 202)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        tool = outbound_cancel if scope["method"] == "DELETE" else outbound_status
        await self._answer(scope, receive, send, tool, 200)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, tool: Tool, status: int) -> None:
        await send_answer(send, self._admit_and_run(tool, scope, receive), "messages.failed", status)

    async def _admit_and_run(self, tool: Tool, scope: Scope, receive: Receive) -> object:
        methods = ("POST",) if tool is outbound_submit else ("GET", "DELETE")
        principal = await self._door.admit(scope, *methods)
        return cleaned(await self._run(Call(self._services, principal), tool, scope, receive))

    async def _run(self, call: Call, tool: Tool, scope: Scope, receive: Receive) -> Mapping[str, Any]:
        try:
            require_role(call.principal, tool)
            if tool is not outbound_submit:
                return await tool.run(call, MailArguments(id=_id(scope)))
            given = await json_body(scope["headers"], receive, LARGEST_BODY)
            return await submit(call, _arguments(given, scope["headers"]), "http")
        except AccessRefused as refused:
            await self._services.parts.refusals.note(call.principal, tool.name, refused)
            raise


def _arguments(given: Any, headers: RawHeaders) -> SubmitArguments:
    if not isinstance(given, dict):
        raise BadInput("body", "is not an object", "send one mail as a JSON object")
    keys = values_of(headers, b"idempotency-key")
    if len(keys) > 1:
        raise BadInput("idempotency-key", "is given twice", "send one")
    body: dict[str, Any] = {**given, **({"idempotency_key": keys[0]} if keys else {})}
    return read_arguments("POST /v1/messages", SubmitArguments, body)


def _id(scope: Scope) -> UUID:
    try:
        return UUID(scope["path_params"]["id"])
    except ValueError:
        raise BadInput("id", "is not the id of a mail", "use the one that POST /v1/messages returned") from None


def message_routes(services: Services, door: Door) -> list[Route]:
    """Return the HTTP routes of senders."""
    endpoint = MessagesEndpoint(services, door)
    return [Route(MESSAGES, _Submit(endpoint)), Route(f"{MESSAGES}/{{id}}", endpoint)]


class _Submit:
    """A route wants a plain application of its own."""

    def __init__(self, endpoint: MessagesEndpoint) -> None:
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._endpoint.submit(scope, receive, send)
