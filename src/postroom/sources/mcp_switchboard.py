"""The switchboard client of connectors, which calls MCP tools: over HTTP, or in memory within one process.

Every call is independent, as on the server: there is no session that could be lost, so there is nothing to reconnect,
and a failed call does not affect the next. Only the HTTP connections underneath are kept.
"""

import base64
import contextlib
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from http import HTTPStatus
from typing import Any, cast
from uuid import UUID

import httpx2
from mcp import types
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server import Server
from mcp.shared.exceptions import MCPError
from mcp.types.version import LATEST_MODERN_VERSION
from pydantic import ValidationError

from postroom.core.backfill.cursor import BackfillCursor, parse_cursor
from postroom.core.backfill.window import Window
from postroom.core.days import zone_named
from postroom.core.errors import (
    AccountUnusable,
    BadInput,
    Conflict,
    IntakeRefused,
    LeaseLost,
    NotFound,
    PostroomError,
    Refused,
    SwitchboardUnavailable,
)
from postroom.core.mail.ingestion import parse_rule
from postroom.core.outbound.reports import LARGEST_REPORT
from postroom.sources.switchboard_client import (
    BackfillAssignment,
    BackfillProgress,
    BackfillStatus,
    ConnectorRequest,
    ContactsPage,
    Filters,
    GrantedToken,
    Receipt,
)

TIMEOUT_S = 30
# Well within that timeout, and that of proxies.
LONGEST_POLL_S = 20
RETRY_AFTER_S = 60
# Errors of JSON encoding. A malformed answer is a ValueError too, and not the envelope's fault.
UNSENDABLE = (ValueError, TypeError, RecursionError)
NOT_KNOWN = frozenset({"no_token", "bad_token", "expired", "revoked", "foreign_host", "foreign_origin"})


class McpSwitchboard:
    """The switchboard's tools, as far as connectors use them. `address` is where it is, for people to read."""

    def __init__(self, connect: Callable[[], Client], address: str = "in this process") -> None:
        self._connect = connect
        self._address = address

    async def ingest(self, envelope: Mapping[str, Any]) -> Receipt:
        return _receipt(await self._call("ingest", {"envelope": dict(envelope)}))

    async def ingest_batch(self, envelopes: Sequence[Mapping[str, Any]]) -> list[Receipt | PostroomError]:
        """Ingest a batch. One that is too large, or that contains invalid text, is split in half and sent again."""
        if not envelopes:
            return []
        try:
            answer = await self._call("ingest.batch", {"items": [dict(each) for each in envelopes]})
        except BadInput as error:
            if len(envelopes) == 1:
                return [error]
            middle = len(envelopes) // 2
            return [*await self.ingest_batch(envelopes[:middle]), *await self.ingest_batch(envelopes[middle:])]
        return [_result(each) for each in answer["results"]]

    async def changes(self, reports: Sequence[Mapping[str, Any]]) -> None:
        if reports:
            await self._call("mail.changes", {"items": [dict(each) for each in reports]})

    async def heartbeat(self, report: Mapping[str, Any]) -> None:
        await self._call("connector.heartbeat", {"report": dict(report)})

    async def access_token(self, refused: str | None = None) -> GrantedToken:
        """A token for this connector's mailbox. `refused` is an earlier one that the provider refused."""
        answer = await self._call("credentials.access_token", {} if refused is None else {"refused": refused})
        life = timedelta(seconds=float(answer["expires_in_s"]))
        return GrantedToken(str(answer["access_token"]), life, str(answer["email"]), frozenset(answer["scopes"]))

    async def correspondents(self, addresses: Sequence[str]) -> None:
        """Report people to whom the user has written."""
        if addresses:
            await self._call("contacts.written_to", {"addresses": list(addresses)})

    async def report(self, raw: bytes) -> None:
        """Pass on a delivery report or a complaint about mail that was sent."""
        await self._call("outbound.report", {"raw": base64.b64encode(raw[:LARGEST_REPORT]).decode("ascii")})

    async def contacts(self, cursor: str) -> ContactsPage:
        answer = await self._call("contacts.export", {"cursor": cursor})
        generated_at = datetime.fromisoformat(answer["generated_at"])
        return ContactsPage(generated_at, tuple(answer["addresses"]), answer["next_cursor"])

    async def filters(self) -> Filters:
        answer = await self._call("filters.export", {})
        rules = tuple(parse_rule(each) for each in answer["rules"])
        return Filters(datetime.fromisoformat(answer["generated_at"]), answer["version"], rules)

    async def requests(self, wait: timedelta) -> list[ConnectorRequest]:
        seconds = min(wait.total_seconds(), LONGEST_POLL_S)
        answer = await self._call("connector.requests", {"wait_s": seconds})
        return [_read_request(each) for each in answer["requests"]]

    async def reply(self, request: ConnectorRequest, result: Mapping[str, Any]) -> None:
        await self._end(request, result=dict(result))

    async def fail(self, request: ConnectorRequest, error: str) -> None:
        await self._end(request, error=error)

    async def poll_backfill(
        self, connector_type: str, endpoint_identity: str, lease_token: str | None = None
    ) -> BackfillAssignment | None:
        asked = {"connector_type": connector_type, "endpoint_identity": endpoint_identity}
        if lease_token is not None:
            asked["lease_token"] = lease_token
        answer = await self._call("backfill.poll", asked)
        return None if answer["job_id"] is None else _assignment(answer)

    async def report_backfill(self, progress: BackfillProgress) -> BackfillStatus:
        answer = await self._call("backfill.progress", _progress(progress))
        left = answer.get("left_today_micros")
        return BackfillStatus(
            str(answer["status"]),
            bool(answer.get("live_backlog", False)),
            None if left is None else int(left),
            float(answer.get("wait_s", 0.0)),
        )

    async def _end(self, request: ConnectorRequest, **outcome: object) -> None:
        held = {"request_id": str(request.id), "lease_token": str(request.lease_token)}
        await self._call("connector.reply", {**held, **outcome})

    async def _call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        request = types.CallToolRequest(params=types.CallToolRequestParams(name=tool, arguments=arguments))
        answer: types.CallToolResult | MCPError
        try:
            async with self._connect() as client:
                try:
                    # Not `client.call_tool`, which first lists all tools to check the answer's schema.
                    answer = await client.session.send_request(request, types.CallToolResult)
                except MCPError as error:
                    answer = error
        except Exception as error:
            raise _not_sent(error, self._address) from error
        if isinstance(answer, MCPError):
            raise _error(_data(answer.data), f"the switchboard {self._address} gave an error: {answer.message}")
        if answer.is_error:
            raise _error(_data(answer.structured_content), "the switchboard refused the call")
        return _data(answer.structured_content)


@contextlib.asynccontextmanager
async def switchboard_at(url: str, token: str) -> AsyncGenerator[McpSwitchboard]:
    """The switchboard at this address, such as `http://127.0.0.1:8025/mcp`, over persistent connections."""
    headers = {"Authorization": f"Bearer {token}"}
    hooks = {"response": [_check_status]}
    async with httpx2.AsyncClient(headers=headers, timeout=TIMEOUT_S, event_hooks=hooks) as http:
        yield McpSwitchboard(
            lambda: Client(streamable_http_client(url, http_client=http), mode=LATEST_MODERN_VERSION, cache=None),
            f"at {url}",
        )


def switchboard_within(server: Server[Any]) -> McpSwitchboard:
    """The switchboard in this process. The server was built for one principal."""
    return McpSwitchboard(lambda: Client(server, mode=LATEST_MODERN_VERSION, cache=None))


class _TooLargeError(Exception):
    """The body is too large, for the switchboard or for a proxy in between."""


class _UnexpectedAnswerError(Exception):
    """The status of an answer that no switchboard gives: the address is wrong, or a proxy cannot reach it."""


async def _check_status(response: httpx2.Response) -> None:
    if response.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        raise _TooLargeError
    if response.is_error and not response.headers.get("Content-Type", "").startswith("application/json"):
        raise _UnexpectedAnswerError(response.status_code)


def _receipt(answer: Mapping[str, Any]) -> Receipt:
    return Receipt(UUID(answer["request_id"]), answer["duplicate"])


def _read_request(answer: Mapping[str, Any]) -> ConnectorRequest:
    return ConnectorRequest(
        UUID(answer["request_id"]),
        UUID(answer["lease_token"]),
        answer["kind"],
        _data(answer["arguments"]),
        timedelta(seconds=answer["expires_in_s"]),
    )


def _assignment(answer: Mapping[str, Any]) -> BackfillAssignment:
    params = _data(answer["params"])
    first, last = (date.fromisoformat(params[name]) for name in ("date_from", "date_to"))
    window = Window(first, last, zone_named(params["time_zone"]))
    cursor = answer["cursor"]
    return BackfillAssignment(
        job_id=UUID(answer["job_id"]),
        lease_token=str(answer["lease_token"]),
        batch_seq=int(answer["batch_seq"]),
        wait_s=float(answer["wait_s"]),
        categories=tuple(params["target_categories"]),
        window=window,
        cursor=BackfillCursor.first(window) if cursor is None else parse_cursor(_data(cursor), window),
        rate_limit_per_hour=int(params["rate_limit_per_hour"]),
        message_cost_micros=int(params["message_cost_micros"]),
        in_background=params["mode"] == "background",
    )


def _progress(progress: BackfillProgress) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "job_id": str(progress.job_id),
        "lease_token": progress.lease_token,
        "batch_seq": progress.batch_seq,
        "rows_processed": progress.processed,
        "rows_skipped": progress.skipped,
        "cost_spent_cents": 0,
        "cost_spent_micros": progress.spent_micros,
        "cursor": progress.cursor.as_json(),
        "status": progress.status,
    }
    if progress.failed:
        arguments["failed"] = [{"message_id": each.id, "reason": each.reason} for each in progress.failed]
    if progress.categories:
        arguments["categories"] = dict(progress.categories)
    if progress.error is not None:
        arguments["error"] = progress.error
    return arguments


def _result(answer: Mapping[str, Any]) -> Receipt | PostroomError:
    return _receipt(answer) if answer["status"] == "accepted" else _error(_data(answer["error"]), "refused")


def _data(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _error(form: Mapping[str, Any], otherwise: str) -> PostroomError:
    """The error that the switchboard reported, as one of ours."""
    field, problem, remedy = (str(form.get(name, "")) for name in ("field", "problem", "remedy"))
    message = f"{field}: {problem}; {remedy}" if problem else otherwise
    match form.get("code"):
        case "bad_input" | "too_large":
            return BadInput(field, problem, remedy)
        case "conflict":
            return Conflict(field, problem, remedy)
        case "lease_lost":
            return LeaseLost(message)
        case "not_found":
            return NotFound(message)
        case "account_unusable":
            return AccountUnusable("unusable", problem, remedy)
        case "no_room":
            return IntakeRefused(message, timedelta(seconds=float(form.get("retry_after_s", RETRY_AFTER_S))))
        case str(code) if code == "refused" or code in NOT_KNOWN:
            return Refused(message)
        case _:
            return SwitchboardUnavailable(message)


def _not_sent(error: Exception, address: str) -> PostroomError:
    """The error for a call that failed on the way. Only a fault in the envelope itself is BadInput."""
    causes = list(_leaves(error))
    if any(isinstance(cause, _TooLargeError) for cause in causes):
        return BadInput("body", "is too large to be sent", "send fewer at once, and leave large attachments out")
    if any(isinstance(cause, UNSENDABLE) and not isinstance(cause, ValidationError) for cause in causes):
        return BadInput("envelope", "cannot be sent as JSON", "use plain values and well-formed text")
    if status := next((cause.args[0] for cause in causes if isinstance(cause, _UnexpectedAnswerError)), None):
        is_wrong = status < HTTPStatus.INTERNAL_SERVER_ERROR
        remedy = "check the address, which usually ends in /mcp" if is_wrong else "try again later"
        return SwitchboardUnavailable(f"the switchboard {address} answered {status}; {remedy}")
    names = ", ".join(sorted({type(cause).__name__ for cause in causes}))
    return SwitchboardUnavailable(f"the switchboard {address} cannot be reached ({names}); try again later")


def _leaves(error: Exception) -> Iterator[Exception]:
    if isinstance(error, ExceptionGroup):
        for inner in cast("ExceptionGroup[Exception]", error).exceptions:
            yield from _leaves(inner)
    else:
        yield error
