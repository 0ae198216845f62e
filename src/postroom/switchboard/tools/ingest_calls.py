"""The tools for ingest, queues and connectors: each passes its arguments to a service and formats the answer."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

from postroom.core.errors import AccountUnusable, BadInput, LeaseLost, PostroomError, Refused
from postroom.core.heartbeat import parse_heartbeat
from postroom.core.roles import Principal, Role
from postroom.manage import connectors, queues
from postroom.manage.audit import signature
from postroom.store.acceptance import Accepted
from postroom.store.connectors import record_heartbeat
from postroom.store.engine.codecs import time_text
from postroom.store.mail_changes import Change, apply_changes
from postroom.store.message_queues import queues_of
from postroom.switchboard.access import (
    bound_identity,
    may_ingest,
    not_its_channel,
    not_its_identity,
    note_refusal,
    require_queue,
)
from postroom.switchboard.buffer import Delivery, LeaseRef
from postroom.switchboard.problems import AccessRefused, problem_of
from postroom.switchboard.services import Services
from postroom.switchboard.tools import ingest_schemas as forms
from postroom.switchboard.tools.untrusted import is_plain, marked_envelope

IDENTITY = "source.endpoint_identity"


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool: the caller, and awaitables that end when nobody waits for the answer any more."""

    services: Services
    principal: Principal
    ends: tuple[Callable[[], Awaitable[object]], ...] = ()


async def ingest(call: Call, arguments: forms.IngestArguments) -> forms.IngestAnswer:
    return await ingest_one(call, arguments.envelope)


async def ingest_batch(call: Call, arguments: forms.IngestBatchArguments) -> forms.IngestBatchAnswer:
    return await ingest_many(call, arguments.items)


async def ingest_one(call: Call, envelope: object) -> forms.IngestAnswer:
    bound_to = bound_identity(call.principal)
    if not may_ingest(call.principal, envelope):
        raise not_its_channel(call.principal)
    try:
        accepted = await call.services.intake.ingest(envelope, bound_to)
    except Refused as error:
        raise not_its_identity(call.principal, IDENTITY) from error
    return {"request_id": str(accepted.request_id), "status": "accepted", "duplicate": accepted.duplicate}


async def ingest_many(call: Call, envelopes: Sequence[object]) -> forms.IngestBatchAnswer:
    """Accept the good envelopes, list the bad ones by index. Foreign sources are audited once for the whole batch."""
    bound_to = bound_identity(call.principal)
    own = [each for each in envelopes if may_ingest(call.principal, each)]
    taken = iter(await call.services.intake.ingest_batch(own, bound_to) if own else [])
    foreign = not_its_channel(call.principal)
    outcomes = [next(taken) if may_ingest(call.principal, each) else foreign for each in envelopes]
    if len(own) < len(envelopes):
        await note_refusal(call.services, call.principal, "ingest.batch", foreign)
    if any(isinstance(each, Refused) and not isinstance(each, AccessRefused) for each in outcomes):
        await note_refusal(call.services, call.principal, "ingest.batch", not_its_identity(call.principal, IDENTITY))
    results = [_batch_result(call, index, outcome) for index, outcome in enumerate(outcomes)]
    accepted = sum(isinstance(outcome, Accepted) for outcome in outcomes)
    return {"results": results, "accepted": accepted, "refused": len(outcomes) - accepted}


def _batch_result(
    call: Call, index: int, outcome: Accepted | PostroomError
) -> forms.BatchAccepted | forms.BatchRefused:
    match outcome:
        case Accepted():
            return {
                "index": index,
                "request_id": str(outcome.request_id),
                "status": "accepted",
                "duplicate": outcome.duplicate,
            }
        case AccessRefused():
            problem = problem_of(outcome)
        case Refused():
            problem = problem_of(not_its_identity(call.principal, IDENTITY))
        case _:
            problem = problem_of(outcome)
    return {"index": index, "status": "refused", "error": problem.form}


async def heartbeat(call: Call, arguments: forms.HeartbeatArguments) -> forms.HeartbeatAnswer:
    report = parse_heartbeat(arguments.report)
    if report.connector.endpoint_identity != bound_identity(call.principal):
        raise not_its_identity(call.principal, "report.connector.endpoint_identity")
    kept = await call.services.database.run(record_heartbeat(report, call.services.clock()))
    return {"status": "recorded" if kept else "outdated"}


async def access_token(call: Call, arguments: forms.AccessTokenArguments) -> forms.AccessTokenAnswer:
    """A token for the endpoint to which the caller is bound; it cannot name another."""
    identity, credentials = bound_identity(call.principal), call.services.credentials
    if identity is None or credentials is None:
        raise AccountUnusable(
            "missing", "no account is connected here", "connect one with `postroom account add gmail`"
        )
    if arguments.refused is not None:
        await credentials.refused_at(identity, arguments.refused)
    token = await credentials.at(identity)
    consent = token.account.consent
    return {
        "access_token": token.value,
        "expires_in_s": token.expires_in.total_seconds(),
        "email": token.account.email,
        "level": "" if consent is None else consent.level,
        "scopes": [] if consent is None else sorted(consent.scopes),
    }


async def mail_changes(call: Call, arguments: forms.MailChangesArguments) -> forms.MailChangesAnswer:
    identity = bound_identity(call.principal)
    changes = [
        Change(each.message_id, frozenset(each.labels_added), frozenset(each.labels_removed), each.deleted)
        for each in arguments.items
    ]
    applied = apply_changes(identity or "", changes, call.services.clock())
    return {"changed": await call.services.database.run(applied)}


async def list_connectors(call: Call, arguments: forms.NoArguments) -> forms.ConnectorListAnswer:
    found = await connectors.list_connectors(call.services.database, call.services.clock)
    return {"connectors": [_connector(each) for each in found]}


def _connector(reported: connectors.ReportedConnector) -> forms.ConnectorForm:
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


async def take_next(call: Call, arguments: forms.NextArguments) -> forms.NextAnswer:
    require_queue(call.services, call.principal, arguments.queue)
    return {"messages": [_message(delivery) for delivery in await _leased(call, arguments)]}


async def _leased(call: Call, arguments: forms.NextArguments) -> list[Delivery]:
    """Lease messages; stop waiting when the caller leaves."""
    wait = timedelta(seconds=arguments.wait_s)
    async with caller_left(call, wait) as left:
        return await call.services.buffer.next(arguments.queue, arguments.max, wait, left)


@contextlib.asynccontextmanager
async def caller_left(call: Call, wait: timedelta) -> AsyncGenerator[asyncio.Event]:
    """An event that is set when nobody waits for the answer to this long poll any more."""
    left = asyncio.Event()
    leaving = [asyncio.create_task(_set_when(end, left)) for end in call.ends] if wait else []
    try:
        yield left
    finally:
        for task in leaving:
            task.cancel()


async def _set_when(end: Callable[[], Awaitable[object]], left: asyncio.Event) -> None:
    await end()
    left.set()


def _message(delivery: Delivery) -> forms.Message:
    return {
        "message_id": str(delivery.message_id),
        "lease_token": str(delivery.lease_token),
        "lease_until": time_text(delivery.lease_until),
        "tier": delivery.tier,
        "promoted_from": delivery.promoted_from,
        "members": [str(member) for member in delivery.members],
        "member_count": delivery.member_count,
        "attempts": delivery.attempts,
        "envelope": marked_envelope(delivery.envelope),
    }


async def ack(call: Call, arguments: forms.AckArguments) -> forms.LeaseAnswer:
    refs = await _own_refs(call, arguments)
    return _outcomes("acked", arguments, refs, await call.services.buffer.ack(refs))


async def nack(call: Call, arguments: forms.NackArguments) -> forms.LeaseAnswer:
    refs = await _own_refs(call, arguments)
    return _outcomes("returned", arguments, refs, await call.services.buffer.nack(refs, arguments.reason))


async def _own_refs(call: Call, arguments: forms.AckArguments) -> list[LeaseRef]:
    """The given messages. Raises AccessRefused if one is in a queue that the caller may not use."""
    refs = _refs(arguments)
    if call.principal.role is Role.AGENT:
        for queue in await call.services.database.run(queues_of([ref.message_id for ref in refs])):
            require_queue(call.services, call.principal, queue)
    return refs


def _refs(arguments: forms.AckArguments) -> list[LeaseRef]:
    match arguments:
        case forms.AckArguments(message_id=None, lease_token=None, items=list(items)):
            return [LeaseRef(each.message_id, each.lease_token) for each in items]
        case forms.AckArguments(message_id=UUID() as message_id, lease_token=UUID() as lease_token, items=None):
            return [LeaseRef(message_id, lease_token)]
        case _:
            remedy = "give both for one message, or only items for several"
            raise BadInput("message_id", "goes with lease_token, and not with items", remedy)


def _outcomes(
    word: Literal["acked", "returned"],
    arguments: forms.AckArguments,
    refs: Sequence[LeaseRef],
    outcomes: Sequence[LeaseLost | None],
) -> forms.LeaseAnswer:
    """The answer: for a single message, a lost lease is an error; for a list, each has its status."""
    if arguments.items is None:
        if (lost := outcomes[0]) is not None:
            raise lost
        return {"status": word}
    return {"results": [_outcome(word, ref, lost) for ref, lost in zip(refs, outcomes, strict=True)]}


def _outcome(word: Literal["acked", "returned"], ref: LeaseRef, lost: LeaseLost | None) -> forms.LeaseOutcome:
    if lost is None:
        return {"message_id": str(ref.message_id), "status": word}
    return {"message_id": str(ref.message_id), "status": "lost", "error": problem_of(lost).form}


async def peek(call: Call, arguments: forms.PeekArguments) -> forms.PeekAnswer:
    require_queue(call.services, call.principal, arguments.queue)
    now = call.services.clock()
    found = await queues.peek(call.services.database, call.services.queues, arguments.queue, arguments.max)
    return {"messages": [_peeked(each, now) for each in found]}


def _peeked(message: queues.WaitingMessage, now: datetime) -> forms.PeekedMessage:
    return {
        "message_id": str(message.message_id),
        "queue": message.queue,
        "tier": message.tier,
        "state": message.state,
        "attempts": message.attempts,
        "accepted_at": time_text(message.accepted_at),
        "waited_s": max(0.0, (now - message.accepted_at).total_seconds()),
        "kind": message.kind if is_plain(message.kind) else None,
        "channel": message.channel,
        "envelope": marked_envelope(message.envelope),
    }


async def stats(call: Call, arguments: forms.NoArguments) -> forms.StatsAnswer:
    found = await queues.queue_stats(call.services.database, call.services.queues)
    return {"queues": [_queue(each) for each in found]}


def _queue(queue: queues.QueueStats) -> forms.QueueForm:
    return {
        "queue": queue.queue,
        "tiers": [
            {
                "tier": each.tier,
                "waiting": each.waiting,
                "leased": each.leased,
                "oldest_waiting_at": time_text(each.oldest_waiting_at) if each.oldest_waiting_at else None,
                "streak": each.streak,
                "guard": each.guard,
            }
            for each in queue.tiers
        ],
    }


async def replay(call: Call, arguments: forms.ReplayArguments) -> forms.ReplayAnswer:
    replayed = await queues.replay(
        call.services.database,
        call.services.queues,
        arguments.queue,
        signature(call.principal.actor, call.principal.role),
        since=arguments.since,
        until=arguments.until,
        kinds=arguments.kinds,
        ids=arguments.ids,
        most=arguments.max,
        clock=call.services.clock,
    )
    return {"message_ids": [str(each) for each in replayed], "replayed": len(replayed)}
