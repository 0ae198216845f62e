"""Connector requests: work that needs a mailbox at once is queued here, leased by its connector, and answered.

    ask_connector ──► queued ⇄ leased ──► answered | failed     (lease_requests, give_back_requests, end_request)
                         └────────┴─────► expired                when nobody answered in time

When a connector dies while it holds a request, the lease runs out and the next connector to look gets the request.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, NamedTuple
from uuid import UUID

from postroom.core.errors import BadInput, LeaseLost, NotFound, TooManyRequests
from postroom.core.lifecycle import RequestState
from postroom.core.mail.mailbox_requests import RequestKind
from postroom.store.engine.codecs import as_time, as_uuid, from_json, json_text
from postroom.store.engine.database import Notify, Script, query, sql, transaction
from postroom.store.engine.reading import read_first, read_row

ASKED = "connector_requests"
ENDED = "connector_answers"
MOST_LIVE = 100
KEPT = timedelta(days=7)
LONGEST_ARGUMENTS = 65_536
LONGEST_ANSWER = 1_048_576


class NewRequest(NamedTuple):
    """A request to the connector of an endpoint, and until when it makes sense."""

    id: UUID
    endpoint_identity: str
    kind: RequestKind
    arguments: Mapping[str, Any]
    expires_at: datetime


class LeasedRequest(NamedTuple):
    """A request leased by a connector."""

    id: UUID
    lease_token: UUID
    kind: RequestKind
    arguments: dict[str, Any]
    lease_until: datetime
    expires_at: datetime


class Reply(NamedTuple):
    """The outcome: a result, or a text that says why there is none."""

    result: Mapping[str, Any] | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class RequestView:
    """The current state of a request."""

    id: UUID
    endpoint_identity: str
    kind: RequestKind
    arguments: dict[str, Any]
    state: RequestState
    result: dict[str, Any] | None
    error: str | None
    created_at: datetime
    expires_at: datetime
    ended_at: datetime | None

    @property
    def ended(self) -> bool:
        return self.ended_at is not None


@transaction
def ask_connector(request: NewRequest, now: datetime) -> Script[UUID]:
    """Queue the request, unless the same one is waiting and not yet leased; return the id of the waiting one.

    Also prunes requests that ended long ago, so that the table stays small.
    """
    arguments = _check_length("arguments", json_text(request.arguments), LONGEST_ARGUMENTS)
    yield sql("prune_requests", now - KEPT)
    yield from _expire(request.endpoint_identity, now)
    live = yield sql("select_live_requests", request.endpoint_identity)
    for id, kind, given, state in live:
        if state == "queued" and kind == request.kind and from_json(given) == from_json(arguments):
            return as_uuid(id)
    if len(live) >= MOST_LIVE:
        raise TooManyRequests(
            "endpoint_identity", f"has {len(live)} requests waiting already", "wait for their answers"
        )
    yield sql("insert_request", request.id, request.endpoint_identity, request.kind, arguments, now, request.expires_at)
    yield Notify(ASKED, signal_of(request.endpoint_identity))
    return request.id


@transaction
def lease_requests(
    endpoint_identity: str, most: int, lease_token: UUID, lease: timedelta, now: datetime
) -> Script[list[LeasedRequest]]:
    """Lease the oldest waiting requests and those whose lease ran out; expire those that are too late."""
    yield from _expire(endpoint_identity, now)
    yield sql("return_requests", endpoint_identity, now)
    rows = yield sql("lease_requests", endpoint_identity, most, lease_token, now + lease)
    oldest_first = sorted(rows.by_name(), key=lambda row: (as_time(row["created_at"]), as_uuid(row["id"])))
    return [read_row(LeasedRequest, row, lease_token=lease_token) for row in oldest_first]


@transaction
def give_back_requests(endpoint_identity: str, lease_token: UUID) -> Script[int]:
    """Return requests that were leased for a caller that never received them."""
    rows = yield sql("give_back_requests", endpoint_identity, lease_token)
    if rows:
        yield Notify(ASKED, signal_of(endpoint_identity))
    return len(rows)


@transaction
def end_request(id: UUID, endpoint_identity: str, lease_token: UUID, reply: Reply, now: datetime) -> Script[None]:
    """Store the reply, if it comes from the connector that holds the request."""
    answer = None if reply.result is None else _check_length("result", json_text(reply.result), LONGEST_ANSWER)
    state: RequestState = "failed" if reply.error is not None else "answered"
    ended = yield sql("end_request", id, endpoint_identity, lease_token, state, answer, reply.error, now)
    if not ended:
        raise LeaseLost(f"the request {id} is not held under this lease")
    yield Notify(ENDED, str(id))


@query
def any_request_due(endpoint_identity: str, now: datetime) -> Script[bool]:
    """Return whether a lease would find something, without writing anything."""
    return bool((yield sql("select_due_request", endpoint_identity, now)))


@query
def load_request(id: UUID) -> Script[RequestView]:
    view = read_first(RequestView, (yield sql("select_request", id)))
    if view is None:
        raise NotFound(f"there is no request {id}")
    return view


def signal_of(endpoint_identity: str) -> str:
    """The signal on the channel ASKED: a plain word for an endpoint, whose identity may contain any characters."""
    return sha256(endpoint_identity.encode("utf-8", "replace")).hexdigest()[:16]


def _expire(endpoint_identity: str, now: datetime) -> Script[None]:
    for (id,) in (yield sql("expire_requests", endpoint_identity, now)):
        yield Notify(ENDED, str(as_uuid(id)))


def _check_length(field: str, text: str, longest: int) -> str:
    if len(text) > longest:
        raise BadInput(field, f"takes {len(text):,} characters as JSON", f"use at most {longest:,}")
    return text
