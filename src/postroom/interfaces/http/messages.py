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
from postroom.core.roles import Principal
from postroom.interfaces.http.access import require_role
from postroom.interfaces.http.answers import json_of
from postroom.interfaces.http.door import Door, RawHeaders, values_of
from postroom.interfaces.http.json_http import MIB, json_body, send_answer
from postroom.interfaces.http.mcp.operation import McpTool
from postroom.interfaces.http.mcp.registry import TOOLS_BY_NAME
from postroom.interfaces.http.mcp.untrusted import cleaned
from postroom.interfaces.http.services import Services
from postroom.operations.outbound.submissions import AcceptedMail, SubmittedMail, submit
from postroom.outbound.submission.submissions import Submissions

MESSAGES = "/v1/messages"
LARGEST_BODY = 15 * MIB
SUBMIT, STATUS, CANCEL = (TOOLS_BY_NAME[f"outbound.{verb}"] for verb in ("submit", "status", "cancel"))


class MessagesEndpoint:
    """The mail of the sender that a token is bound to."""

    def __init__(self, services: Services, door: Door) -> None:
        self._services = services
        self._door = door

    async def submit(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._answer(scope, receive, send, SUBMIT, 202)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._answer(scope, receive, send, CANCEL if scope["method"] == "DELETE" else STATUS, 200)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, tool: McpTool, status: int) -> None:
        await send_answer(send, self._admit_and_run(tool, scope, receive), "messages.failed", status)

    async def _admit_and_run(self, tool: McpTool, scope: Scope, receive: Receive) -> object:
        methods = ("POST",) if tool is SUBMIT else ("GET", "DELETE")
        principal = await self._door.admit(scope, *methods)
        return cleaned(await self._run(principal, tool, scope, receive))

    async def _run(self, principal: Principal, tool: McpTool, scope: Scope, receive: Receive) -> Mapping[str, Any]:
        by, parts = self._services.caller(principal), self._services.parts
        try:
            require_role(principal, tool)
            if tool is not SUBMIT:
                return await tool.run(parts, by, {"id": _id(scope)})
            mail = _mail(await json_body(scope["headers"], receive, LARGEST_BODY), scope["headers"])
            return json_of(AcceptedMail, await submit(by, parts.get(Submissions), mail, "http"))
        except AccessRefused as refused:
            await parts.refusals.note(principal, tool.name, refused)
            raise


def _mail(given: Any, headers: RawHeaders) -> SubmittedMail:
    if not isinstance(given, dict):
        raise BadInput("body", "is not an object", "send one mail as a JSON object")
    keys = values_of(headers, b"idempotency-key")
    if len(keys) > 1:
        raise BadInput("idempotency-key", "is given twice", "send one")
    body: dict[str, Any] = {**given, **({"idempotency_key": keys[0]} if keys else {})}
    return SubmittedMail(**SUBMIT.values(body, "POST /v1/messages"))


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
