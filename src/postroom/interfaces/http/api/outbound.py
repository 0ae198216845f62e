"""Outgoing mail: lanes, tenants, fairness, senders, destinations and results; and each mail with its conversation."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

from pydantic import Field

from postroom.core.access import OPERATE
from postroom.core.outbound.rollout import Stage
from postroom.core.views import Page
from postroom.interfaces.http.api.call import Call
from postroom.interfaces.http.api.forms import LONGEST_REASON, Arguments, Done, Filter, Paged, Reason, Text
from postroom.interfaces.http.api.handwritten import Noun
from postroom.interfaces.http.cursors import opened, opened_number, sealed
from postroom.operations.outbound.outbound import cancel_mail, resolve_mail, send_mail_now
from postroom.operations.outbound.outbound_overview import (
    DestinationPause,
    EvennessHour,
    LaneLine,
    MailConversation,
    OutboundResults,
    OutgoingLine,
    TenantKey,
    TenantOrder,
    TenantPage,
    WatchedSender,
    Window,
)
from postroom.operations.outbound.outbound_stats import QueueStats
from postroom.operations.outbound.senders import (
    LONGEST_THROTTLE,
    SenderView,
    TenantSenders,
    load_tenant_senders,
    release_sender,
    throttle_sender_for,
)
from postroom.operations.outbound.suppressions import Suppression, suppress, suppression_page, unsuppress
from postroom.operations.outbound.tenants import load_tenant

OUTBOUND = Noun("Outgoing mail")
TENANTS, MAIL, SUPPRESSED = "tenants", "outbound", "suppressions"
SENDERS_SHOWN = 50
MAIL_STATE = Literal["all", "failed", "deferred", "unknown", "canceled"]


class OutboundQuery(Arguments):
    window: Window = Field("1h", description="The window of the figures.")


class TenantsQuery(Paged):
    window: Window = Field("1h", description="The window of what was served.")
    order: TenantOrder = Field("share", description="Most served first, or longest waiting first.")


class OutgoingQuery(Paged):
    state: MAIL_STATE = Field("all", description="Only mail in these states.")


class SuppressionsQuery(Paged):
    tenant: Filter | None = Field(None, description="Only those of this tenant.")


class MailPath(Arguments):
    mail: UUID = Field(description="The id of the outgoing mail.")


class TenantPath(Arguments):
    tenant: Filter = Field(description="The name of the tenant.")


class SenderPath(Arguments):
    username: Filter = Field(description="The sender's username.")


class ThrottleBody(Reason):
    hours: int = Field(ge=1, le=LONGEST_THROTTLE // timedelta(hours=1))


class ResolveBody(Reason):
    outcome: Literal["sent", "not_sent"]


class SuppressionBody(Arguments):
    tenant: Filter
    address: Filter
    reason: Text | None = Field(None, max_length=LONGEST_REASON, description="Why, for the audit log.")


@dataclass(frozen=True, slots=True)
class OutboundAnswer:
    since: datetime
    until: datetime
    stage: Stage
    queue: QueueStats
    lanes: Sequence[LaneLine]
    evenness: Sequence[EvennessHour]
    watched: Sequence[WatchedSender]
    results: OutboundResults
    paused: Sequence[DestinationPause]


@OUTBOUND.get("/outbound")
async def read_outbound(call: Call, query: OutboundQuery) -> OutboundAnswer:
    """The outbound queue: its health and lanes, fairness, watched senders, results and paused destinations."""
    overview = call.parts.outbound
    queue = await overview.queue(query.window, "share", None, 1)
    return OutboundAnswer(
        since=queue.stats.since,
        until=queue.stats.until,
        stage=queue.stats.stage,
        queue=queue.stats.queue,
        lanes=queue.lanes,
        evenness=await overview.evenness(query.window),
        watched=await overview.watched(),
        results=await overview.results(query.window),
        paused=await overview.destination_pauses(),
    )


@OUTBOUND.get("/outbound/tenants")
async def read_tenants(call: Call, query: TenantsQuery) -> TenantPage:
    """The tenants that were served in the window or have mail waiting."""
    after = opened(TENANTS, query.next)
    place = None if after is None else TenantKey.read(after)
    page = (await call.parts.outbound.queue(query.window, query.order, place, query.limit)).tenants
    return replace(page, next=sealed(TENANTS, page.next))


@OUTBOUND.get("/outbound/tenants/{tenant}")
async def read_tenant(call: Call, path: TenantPath) -> TenantSenders:
    """One tenant, and its first senders."""
    return await load_tenant_senders(call.database, path.tenant, SENDERS_SHOWN, call.clock)


@OUTBOUND.post("/outbound/senders/{username}/throttle", OPERATE)
async def throttle_one_sender(call: Call, path: SenderPath, body: ThrottleBody) -> SenderView:
    """Hold back a sender's mail for some hours. Safe to repeat: the last one holds."""
    time = timedelta(hours=body.hours)
    return await throttle_sender_for(call.by(body.reason), path.username, time)


@OUTBOUND.post("/outbound/senders/{username}/release", OPERATE)
async def release_one_sender(call: Call, path: SenderPath, body: Reason) -> Done:
    """End a throttle, and forgive what was counted. Safe to repeat."""
    released = await release_sender(call.by(body.reason), path.username)
    return Done(done="The sender is released." if released else "The sender was not throttled.")


@OUTBOUND.get("/outbound/mail")
async def read_outgoing(call: Call, query: OutgoingQuery) -> Page[OutgoingLine]:
    """Outgoing mail, the newest first."""
    page = await call.parts.outbound.mail(query.state, opened_number(MAIL, query.next), query.limit)
    return Page(page.lines, sealed(MAIL, page.next))


@OUTBOUND.get("/outbound/mail/{mail}")
async def read_outgoing_mail(call: Call, path: MailPath) -> MailConversation:
    """One mail: its first recipients, the attempts, and what their servers said."""
    return await call.parts.outbound.conversation(path.mail)


@OUTBOUND.post("/outbound/mail/{mail}/cancel", OPERATE)
async def cancel_outgoing(call: Call, path: MailPath, body: Reason) -> Done:
    """Cancel a mail that has not left yet."""
    state = await cancel_mail(call.by(body.reason), path.mail)
    return Done(done="The mail is canceled." if state == "canceled" else "It is being stopped, if it has not left.")


@OUTBOUND.post("/outbound/mail/{mail}/send-now", OPERATE)
async def send_outgoing_now(call: Call, path: MailPath, body: Reason) -> Done:
    """Make a mail that waits for its next attempt due at once."""
    await send_mail_now(call.by(body.reason), path.mail)
    return Done(done="The mail is due now.")


@OUTBOUND.post("/outbound/mail/{mail}/resolve", OPERATE)
async def resolve_outgoing(call: Call, path: MailPath, body: ResolveBody) -> Done:
    """Say what happened to a mail whose state is unknown."""
    state = await resolve_mail(call.by(body.reason), path.mail, body.outcome)
    return Done(done=f"The mail is {state.replace('_', ' ')}.")


@OUTBOUND.get("/outbound/suppressions")
async def read_suppressions(call: Call, query: SuppressionsQuery) -> Page[Suppression]:
    """Addresses that get no more mail of a tenant, the newest first."""
    page = await suppression_page(call.database, query.tenant, opened(SUPPRESSED, query.next), query.limit)
    return Page(page.lines, sealed(SUPPRESSED, page.next))


@OUTBOUND.post("/outbound/suppressions", OPERATE)
async def suppress_address(call: Call, body: SuppressionBody) -> Done:
    """Send nothing of a tenant to an address. Safe to repeat."""
    tenant = await load_tenant(call.database, body.tenant)
    await suppress(call.by(body.reason), tenant.name, body.address)
    return Done(done="The address gets no more mail of the tenant.")


@OUTBOUND.post("/outbound/suppressions/remove", OPERATE)
async def unsuppress_address(call: Call, body: SuppressionBody) -> Done:
    """Let mail of a tenant go to an address again."""
    await unsuppress(call.by(body.reason), body.tenant, body.address)
    return Done(done="The address may get mail of the tenant again.")
