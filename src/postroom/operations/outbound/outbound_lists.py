"""The outbound queue and its mail, as programs read them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from operator import attrgetter
from typing import Annotated, Literal

from postroom.core.access import READ
from postroom.core.outbound.delivery_health import DeliveryHealth
from postroom.core.outbound.rollout import Stage
from postroom.core.views import Page
from postroom.operations.nouns import OUTBOUND
from postroom.operations.operation import Argument, Limit, Next, NextNumber, command, get
from postroom.operations.outbound.outbound import RECIPIENT_COLUMNS, MailId
from postroom.operations.outbound.outbound_overview import (
    LaneLine,
    OutboundOverview,
    TenantKey,
    TenantOrder,
    TenantPage,
    WatchedSender,
    Window,
)
from postroom.outbound.queue.statistics import QueueStats
from postroom.store.outbound.destinations import DestinationPause
from postroom.store.outbound.outbound_results import OutboundResults
from postroom.store.outbound.outbound_views import EvennessHour, MailConversation, OutgoingLine

TABLES = {
    "recipients": RECIPIENT_COLUMNS,
    "attempts": ("ended_at", "address", "number", "outcome", "times", "host", "tls", "took", "reply"),
}


@dataclass(frozen=True, slots=True)
class OutboundQueue:
    """The outbound queue over a window."""

    since: datetime
    until: datetime
    stage: Stage
    health: DeliveryHealth
    queue: QueueStats
    lanes: Sequence[LaneLine]
    evenness: Sequence[EvennessHour]
    watched: Sequence[WatchedSender]
    results: OutboundResults
    paused: Sequence[DestinationPause]


@OUTBOUND.operation(READ, get("/outbound"))
async def load_outbound(
    outbound: OutboundOverview, /, window: Annotated[Window, Argument("The window of the figures.")] = "1h"
) -> OutboundQueue:
    """Load the outbound queue: its health and lanes, fairness, watched senders, results and paused destinations."""
    queue = await outbound.queue(window, "share", None, 1)
    return OutboundQueue(
        since=queue.stats.since,
        until=queue.stats.until,
        stage=queue.stats.stage,
        health=queue.stats.health,
        queue=queue.stats.queue,
        lanes=queue.lanes,
        evenness=await outbound.evenness(window),
        watched=await outbound.watched(),
        results=await outbound.results(window),
        paused=await outbound.destination_pauses(),
    )


@OUTBOUND.operation(READ, get("/outbound/tenants"))
async def list_served_tenants(
    outbound: OutboundOverview,
    /,
    window: Annotated[Window, Argument("The window of what was served.")] = "1h",
    order: Annotated[TenantOrder, Argument("Most served first, or longest waiting first.")] = "share",
    limit: Limit = 50,
    next: Next = None,
) -> TenantPage:
    """List the tenants that were served in the window or have mail waiting."""
    place = None if next is None else TenantKey.read(next)
    return (await outbound.queue(window, order, place, limit)).tenants


@OUTBOUND.operation(READ, get("/outbound/mail"))
async def list_outgoing(
    outbound: OutboundOverview,
    /,
    state: Annotated[
        Literal["all", "failed", "deferred", "unknown", "canceled"], Argument("Only mail in these states.")
    ] = "all",
    limit: Limit = 50,
    next: NextNumber = None,
) -> Page[OutgoingLine]:
    """List outgoing mail, the newest first."""
    return await outbound.mail(state, next, limit)


def _conversation(found: MailConversation) -> Mapping[str, object]:
    """The mail with the recipients and attempts, for programs."""
    return {
        **asdict(found.mail),
        "recipients": [asdict(each) for each in found.recipients],
        "attempts": [asdict(each) for each in found.attempts],
    }


@OUTBOUND.operation(
    READ,
    get("/outbound/mail/{mail}"),
    command("outbound show {mail}", row=_conversation, cells=attrgetter("mail"), tables=TABLES),
)
async def load_conversation(outbound: OutboundOverview, /, mail: MailId) -> MailConversation:
    """Show one mail: its state, why it waits, its first recipients, the attempts, and what their servers said."""
    return await outbound.conversation(mail)
