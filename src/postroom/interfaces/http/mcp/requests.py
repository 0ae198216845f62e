"""The tools to ask a connector for something: its requests and replies, and the list of connectors to ask."""

from datetime import timedelta
from typing import Any, Literal
from uuid import UUID

from pydantic import Field
from typing_extensions import TypedDict

from postroom.core.access import READ, STEER
from postroom.core.bounds import own_identity
from postroom.core.lifecycle import RequestState
from postroom.core.mail.mailbox_requests import (
    FOUND,
    LONGEST_QUERY,
    MOST_FOUND,
    MOST_INGESTED,
    AskedKind,
    RequestKind,
    checked_arguments,
)
from postroom.core.roles import Role
from postroom.interfaces.http.mcp.tool import (
    ADDS,
    ADDS_ONCE,
    READS,
    Arguments,
    Call,
    NoArguments,
    Text,
    tool,
)
from postroom.mailboxes.accounts.mailbox_requests import expires_in_s
from postroom.operations.connectors import connectors
from postroom.store.engine.codecs import time_text
from postroom.store.engine.long_poll import LONGEST_WAIT_S
from postroom.store.intake.connector_requests import LeasedRequest, Reply


class RequestsArguments(Arguments):
    max: int = Field(1, ge=1, le=10, description="How many requests at most, 1 to 10.")
    wait_s: float = Field(
        0, ge=0, le=LONGEST_WAIT_S, description="How many seconds to wait when there is none, 0 to 60."
    )


class LeasedRequestForm(TypedDict):
    """A leased request: the caller's until `lease_until`; an answer is useful for `expires_in_s` seconds."""

    request_id: str
    lease_token: str
    lease_until: str
    expires_in_s: float
    kind: RequestKind
    arguments: dict[str, Any]


class RequestsAnswer(TypedDict):
    requests: list[LeasedRequestForm]


@tool("connector.requests", "Lease requests to this connector", ADDS, roles={Role.CONNECTOR})
async def requests(call: Call, arguments: RequestsArguments) -> RequestsAnswer:
    """Leases up to max requests to the connector that this token is bound to, the oldest first: sync_now asks it to
    look for new mail at once, ingest to ingest the messages in message_ids, estimate and search to count and to list
    the messages that match query; search with ingest true also ingests them, and marks those that are older than live
    mail with event.kind mail.on_demand; backfill to ask for one with backfill.poll, unless it works on one;
    backfill_sample to count and sample what one would find. With wait_s the call waits for a request to arrive. Answer
    each with connector.reply before lease_until, else it is delivered again.
    """
    wait = timedelta(seconds=arguments.wait_s)
    async with call.caller_left(wait) as left:
        leased = await call.services.parts.requests.next(own_identity(call.principal), arguments.max, wait, left)
    return {"requests": [_leased(call, each) for each in leased]}


def _leased(call: Call, request: LeasedRequest) -> LeasedRequestForm:
    return {
        "request_id": str(request.id),
        "lease_token": str(request.lease_token),
        "lease_until": time_text(request.lease_until),
        "expires_in_s": expires_in_s(request, call.services.clock()),
        "kind": request.kind,
        "arguments": request.arguments,
    }


class ReplyArguments(Arguments):
    request_id: UUID = Field(description="The request's id, as `connector.requests` gave it.")
    lease_token: UUID = Field(description="The lease token that `connector.requests` gave with the request.")
    result: dict[str, Any] | None = Field(None, description="The result; not together with error.")
    error: Text | None = Field(
        None, min_length=1, max_length=2000, description="Why it failed, in a few words; instead of result."
    )


class ReplyAnswer(TypedDict):
    status: Literal["recorded"]


@tool("connector.reply", "Answer a request", ADDS, roles={Role.CONNECTOR})
async def reply(call: Call, arguments: ReplyArguments) -> ReplyAnswer:
    """Ends a request with its result, or with an error in words. The error lease_lost means that the lease has expired,
    or that another instance of the connector has the request.
    """
    given = Reply(arguments.result, arguments.error)
    await call.services.parts.requests.reply(
        arguments.request_id, own_identity(call.principal), arguments.lease_token, given
    )
    return {"status": "recorded"}


class RequestArguments(Arguments):
    endpoint_identity: Text = Field(
        min_length=1, max_length=500, description="The connector's endpoint, as `connector.list` shows it."
    )
    kind: AskedKind = Field(
        "sync_now",
        description="What to do: sync_now looks for new mail at once, ingest ingests the messages in message_ids, "
        "estimate counts the messages that match query, search lists them.",
    )
    message_ids: list[Text] | None = Field(
        None,
        min_length=1,
        max_length=MOST_INGESTED,
        description=f"1 to {MOST_INGESTED} messages by the provider's ids; for ingest only.",
    )
    query: Text | None = Field(
        None,
        min_length=1,
        max_length=LONGEST_QUERY,
        description="A search as in Gmail's search box; for estimate and search only.",
    )
    max: int | None = Field(
        None,
        ge=1,
        le=MOST_FOUND,
        description=f"How many messages to list, 1 to {MOST_FOUND}; default {FOUND}.",
    )
    wait_s: float = Field(0, ge=0, le=LONGEST_WAIT_S, description="How many seconds to wait for the answer, 0 to 60.")


class UntrustedResult(TypedDict):
    result: dict[str, Any] | None
    error: str | None


class RequestAnswer(TypedDict):
    """`result` if it was answered, with its numbers also outside `untrusted`; `error` if it failed."""

    request_id: str
    state: RequestState
    result: dict[str, Any] | None
    untrusted: UntrustedResult


@tool("connector.request", "Ask a connector for something", ADDS_ONCE, roles=STEER.tokens)
async def request(call: Call, arguments: RequestArguments) -> RequestAnswer:
    """Asks the connector of an endpoint to look for new mail at once, to ingest given messages, or to count or list the
    results of a search in the mailbox, and waits up to wait_s seconds for an answer. state says how far it has got:
    queued means that the connector has not leased it yet; after a minute, that the connector is not running. A request
    without an answer expires after 5 minutes.
    """
    wait, given = timedelta(seconds=arguments.wait_s), arguments.model_dump(include={"message_ids", "query", "max"})
    asked = checked_arguments(arguments.kind, {name: value for name, value in given.items() if value is not None})
    async with call.caller_left(wait) as left:
        view = await call.services.parts.requests.ask(arguments.endpoint_identity, arguments.kind, asked, wait, left)
    counts = {name: value for name, value in (view.result or {}).items() if isinstance(value, int | float)}
    return {
        "request_id": str(view.id),
        "state": view.state,
        "result": None if view.result is None else counts,
        "untrusted": {"result": view.result, "error": view.error},
    }


class UntrustedError(TypedDict):
    error: str | None


class ConnectorForm(TypedDict):
    connector_type: str
    endpoint_identity: str
    instance_id: str
    version: str | None
    liveness: Literal["online", "stale", "offline"]
    state: str
    uptime_s: float
    counters: dict[str, int]
    checkpoint: dict[str, Any] | None
    first_seen_at: str
    last_heartbeat_at: str
    untrusted: UntrustedError


class ConnectorListAnswer(TypedDict):
    connectors: list[ConnectorForm]


@tool("connector.list", "List the connectors", READS, roles=READ.tokens)
async def list_connectors(call: Call, arguments: NoArguments) -> ConnectorListAnswer:
    """Lists every connector that ever reported, whether it is online, stale or offline, and its last report."""
    found = await connectors.list_connectors(call.services.database, call.services.clock)
    return {"connectors": [_connector(each) for each in found]}


def _connector(reported: connectors.ReportedConnector) -> ConnectorForm:
    view = reported.connector
    return {
        "connector_type": view.connector_type,
        "endpoint_identity": view.endpoint_identity,
        "instance_id": view.instance_id,
        "version": view.version,
        "liveness": reported.liveness,
        "state": view.state,
        "uptime_s": view.uptime_s,
        "counters": dict(view.counters),
        "checkpoint": None if view.checkpoint is None else dict(view.checkpoint),
        "first_seen_at": time_text(view.first_seen_at),
        "last_heartbeat_at": time_text(view.last_heartbeat_at),
        "untrusted": {"error": view.error},
    }


TOOLS = (requests, reply, request, list_connectors)
