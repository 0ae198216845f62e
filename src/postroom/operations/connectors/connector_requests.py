"""Requests to a connector: people and programs ask, the connector leases the requests and answers them."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

from postroom.core import access
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
from postroom.core.views import Named, Untrusted
from postroom.mailboxes.accounts.mailbox_requests import MOST_AT_ONCE, ConnectorRequests, expires_in_s
from postroom.operations.caller import Caller
from postroom.operations.nouns import CONNECTORS
from postroom.operations.operation import ADDS, ADDS_ONCE, Argument, tool
from postroom.store.engine.long_poll import LONGEST_WAIT_S
from postroom.store.intake.connector_requests import Reply


class LeasedConnectorRequest(NamedTuple):
    """A leased request: the caller's until `lease_until`; an answer is useful for `expires_in_s` seconds."""

    request_id: UUID
    lease_token: UUID
    lease_until: datetime
    expires_in_s: float
    kind: RequestKind
    arguments: Mapping[str, Any]


class LeasedConnectorRequests(NamedTuple):
    requests: Sequence[LeasedConnectorRequest]


class ReplyAnswer(NamedTuple):
    status: Literal["recorded"]


class RequestAnswer(NamedTuple):
    """`result` if it was answered, with its numbers also outside `untrusted`; `error` if it failed."""

    request_id: UUID
    state: RequestState
    numbers: Annotated[Mapping[str, Any] | None, Named("result")]
    result: Untrusted[Mapping[str, Any] | None]
    error: Untrusted[str | None]


@CONNECTORS.operation(access.CONNECTORS, tool("connector.requests", "Lease requests to this connector", ADDS))
async def lease_requests(
    by: Caller,
    requests: ConnectorRequests,
    /,
    max: Annotated[int, Argument("How many requests at most, 1 to 10.", 1, MOST_AT_ONCE)] = 1,
    wait_s: Annotated[float, Argument("How many seconds to wait when there is none, 0 to 60.", 0, LONGEST_WAIT_S)] = 0,
) -> LeasedConnectorRequests:
    """Leases up to max requests to the connector that this token is bound to, the oldest first: sync_now asks it to
    look for new mail at once, ingest to ingest the messages in message_ids, estimate and search to count and to list
    the messages that match query; search with ingest true also ingests them, and marks those that are older than live
    mail with event.kind mail.on_demand; backfill to ask for one with backfill.poll, unless it works on one;
    backfill_sample to count and sample what one would find. With wait_s the call waits for a request to arrive. Answer
    each with connector.reply before lease_until, else it is delivered again.
    """
    wait = timedelta(seconds=wait_s)
    async with by.left(wait) as left:
        leased = await requests.next(own_identity(by.program), max, wait, left)
    now = by.clock()
    return LeasedConnectorRequests(
        [
            LeasedConnectorRequest(
                each.id, each.lease_token, each.lease_until, expires_in_s(each, now), each.kind, each.arguments
            )
            for each in leased
        ]
    )


@CONNECTORS.operation(access.CONNECTORS, tool("connector.reply", "Answer a request", ADDS))
async def reply_to_request(
    by: Caller,
    requests: ConnectorRequests,
    /,
    request_id: Annotated[UUID, Argument("The request's id, as `connector.requests` gave it.")],
    lease_token: Annotated[UUID, Argument("The lease token that `connector.requests` gave with the request.")],
    result: Annotated[Mapping[str, Any] | None, Argument("The result; not together with error.")] = None,
    error: Annotated[str | None, Argument("Why it failed, in a few words; instead of result.", 1, 2000)] = None,
) -> ReplyAnswer:
    """Ends a request with its result, or with an error in words. The error lease_lost means that the lease has expired,
    or that another instance of the connector has the request.
    """
    await requests.reply(request_id, own_identity(by.program), lease_token, Reply(result, error))
    return ReplyAnswer("recorded")


@CONNECTORS.operation(access.STEER, tool("connector.request", "Ask a connector for something", ADDS_ONCE))
async def ask_connector(
    by: Caller,
    requests: ConnectorRequests,
    /,
    endpoint_identity: Annotated[str, Argument("The connector's endpoint, as `connector.list` shows it.")],
    kind: Annotated[
        AskedKind,
        Argument(
            "What to do: sync_now looks for new mail at once, ingest ingests the messages in message_ids, "
            "estimate counts the messages that match query, search lists them."
        ),
    ] = "sync_now",
    message_ids: Annotated[
        Sequence[str] | None,
        Argument(f"1 to {MOST_INGESTED} messages by the provider's ids; for ingest only.", 1, MOST_INGESTED),
    ] = None,
    query: Annotated[
        str | None,
        Argument("A search as in Gmail's search box; for estimate and search only.", 1, LONGEST_QUERY),
    ] = None,
    max: Annotated[
        int | None, Argument(f"How many messages to list, 1 to {MOST_FOUND}; default {FOUND}.", 1, MOST_FOUND)
    ] = None,
    wait_s: Annotated[float, Argument("How many seconds to wait for the answer, 0 to 60.", 0, LONGEST_WAIT_S)] = 0,
) -> RequestAnswer:
    """Asks the connector of an endpoint to look for new mail at once, to ingest given messages, or to count or list the
    results of a search in the mailbox, and waits up to wait_s seconds for an answer. state says how far it has got:
    queued means that the connector has not leased it yet; after a minute, that the connector is not running. A request
    without an answer expires after 5 minutes.
    """
    given = {"message_ids": message_ids, "query": query, "max": max}
    asked = checked_arguments(kind, {name: value for name, value in given.items() if value is not None})
    wait = timedelta(seconds=wait_s)
    async with by.left(wait) as left:
        view = await requests.ask(endpoint_identity, kind, asked, wait, left)
    numbers = {name: value for name, value in (view.result or {}).items() if isinstance(value, int | float)}
    return RequestAnswer(view.id, view.state, None if view.result is None else numbers, view.result, view.error)
