"""The outbound page's data: lanes, tenants by share and wait, fairness over time, watched senders, results, mail.

Every name, address and reply in these views may be a stranger's text; the page makes it safe to show.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import isfinite, nan
from typing import Annotated, Literal
from uuid import UUID

from postroom.core.errors import BadInput
from postroom.core.lifecycle import DeliveryState
from postroom.core.outbound.abuse import Sign, abuse_score
from postroom.core.outbound.lanes import LANES, Lane
from postroom.core.outbound.priority import SenderLane, Throttle
from postroom.core.outbound.time_buckets import Spread
from postroom.core.views import Page, Untrusted
from postroom.operations.outbound.evenness_history import EvennessHistory
from postroom.operations.outbound.outbound_health import outbound_health
from postroom.operations.outbound.outbound_stats import HOUR, OutboundStats, stats_of
from postroom.settings.outbound import OutboundSettings
from postroom.store.actions import pauses
from postroom.store.engine.database import Database
from postroom.store.installation.rollups import hour_of
from postroom.store.outbound import outbound_views as views
from postroom.store.outbound.destinations import DestinationPause, list_destination_pauses
from postroom.store.outbound.outbound_figures import SenderService, load_figures
from postroom.store.outbound.outbound_results import ClassResults as ClassResults
from postroom.store.outbound.outbound_results import OutboundResults, load_results
from postroom.store.outbound.outbound_signals import CHANNEL as OUTBOUND
from postroom.store.outbound.outbound_views import (
    EvennessHour as EvennessHour,
)
from postroom.store.outbound.outbound_views import (
    MailConversation,
    OutgoingLine,
    WaitingTenant,
)
from postroom.store.outbound.sender_counts import next_hour, scored_senders
from postroom.store.outbound.tenants import TenantState
from postroom.system.wall_clock import Clock, wall_clock

Window = Literal["1h", "24h", "7d"]
WINDOWS: dict[Window, timedelta] = {"1h": HOUR, "24h": 24 * HOUR, "7d": 7 * 24 * HOUR}
TenantOrder = Literal["share", "wait"]
MAIL_STATES: dict[str, tuple[DeliveryState, ...]] = {
    "all": (),
    "failed": ("bounced", "rejected", "expired", "partially_sent"),
    "deferred": ("deferred",),
    "unknown": ("unknown",),
    "canceled": ("canceled",),
}
"""The choices of states in which mail can be listed."""
CHANNELS = (OUTBOUND, pauses.CHANNEL)
MOST_WATCHED = 50
MOST_DESTINATIONS = 25
MOST_RECIPIENTS = 200
FAR = 1e12
"""A moment after all others, in seconds."""


@dataclass(frozen=True, slots=True)
class LaneLine:
    """A lane: what is in delivery, what waits and since when, and how long the waits were in the window."""

    lane: Lane
    sending: int | None
    limit: Annotated[int | None, "Deliveries at once of one process while lanes compete; null if it is no priority."]
    waiting: int
    oldest_due_at: datetime | None
    wait: Spread | None


@dataclass(frozen=True, slots=True)
class TenantKey:
    """Where a page of tenants ends."""

    value: float
    id: int

    def __str__(self) -> str:
        return f"{self.value!r}/{self.id}"

    @classmethod
    def read(cls, text: str) -> "TenantKey":
        value, _, id = text.partition("/")
        try:
            found = cls(float(value), int(id))
        except ValueError:
            found = cls(nan, 0)
        if not isfinite(found.value):
            raise BadInput("after", f"{text[:40]!r} is no place in this list", "use that of the page before")
        return found


@dataclass(frozen=True, slots=True)
class TenantLine:
    """A tenant: its turns in the window, and what waits now. `share` is of all turns."""

    id: int
    name: str
    weight: float
    state: TenantState
    state_reason: Untrusted[str | None]
    served: int
    share: float
    waiting: int
    held: int
    oldest_due_at: datetime | None


@dataclass(frozen=True, slots=True)
class TenantPage(Page[TenantLine]):
    tenants: Annotated[int, "How many had mail served or waiting."]
    served: Annotated[int, "Turns given in all: recipients, each time their mail was taken from the queue."]


@dataclass(frozen=True, slots=True)
class Queue:
    """The figures of a window, and the queue as it is now."""

    stats: OutboundStats
    lanes: list[LaneLine]
    tenants: TenantPage


@dataclass(frozen=True, slots=True)
class WatchedSender:
    """A sender with a throttle or a score, and the signs that count now."""

    username: str
    tenant: str
    score: int
    signs: tuple[Sign, ...]
    throttle: Throttle | None
    is_held: Annotated[bool, "Whether its mail is held back now; otherwise it drains slowly, or is only watched."]


class OutboundOverview:
    """Read the page's data. One object is kept, since it remembers the fairness of hours that are over."""

    def __init__(self, database: Database, settings: OutboundSettings, clock: Clock = wall_clock) -> None:
        self._database = database
        self._settings = settings
        self._clock = clock
        self._evenness = EvennessHistory(database)
        self.threshold = settings.abuse_threshold

    def since(self, window: Window) -> datetime:
        """The hour in which the window begins."""
        return hour_of(self._clock() - WINDOWS[window])

    async def queue(self, window: Window, order: TenantOrder, after: TenantKey | None, most: int) -> Queue:
        """Read lanes, tenants and figures. The first hour of the window counts as a whole."""
        now, since = self._clock(), self.since(window)
        figures = await self._database.run(load_figures(since, next_hour(now), now))
        health = await outbound_health(self._database, self._settings, now)
        stats = stats_of(figures, health, self._settings, since, now)
        waiting = await self._database.run(views.waiting_tenants())
        tenants = await self._tenants(_Totals.of(figures.service, waiting), order, after, most)
        sending: dict[SenderLane, int] = {
            each.lane: each.sending for each in await self._database.run(views.sending_lanes())
        }
        oldest = {each.lane: each.oldest_due_at for each in figures.waiting}
        lanes = [_lane(each, stats, sending, oldest.get(each)) for each in LANES]
        return Queue(stats, lanes, tenants)

    async def _tenants(self, totals: "_Totals", order: TenantOrder, after: TenantKey | None, most: int) -> TenantPage:
        keys = totals.sorted_keys(order)
        if after is not None:
            keys = [each for each in keys if (-each.value, each.id) > (-after.value, after.id)]
        shown = keys[:most]
        names = {each.id: each for each in await self._database.run(views.tenants_by_id([key.id for key in shown]))}
        lines = [totals.line(names[key.id]) for key in shown if key.id in names]
        return TenantPage(lines, str(shown[-1]) if len(keys) > most else None, len(totals.ids), totals.all_served)

    async def evenness(self, window: Window) -> list[EvennessHour]:
        """How evenly tenants were served in each hour, for at least a day."""
        return await self._evenness.since(self.since("24h" if window == "1h" else window), self._clock())

    async def watched(self) -> list[WatchedSender]:
        """Senders with a throttle or a score, the highest first."""
        now = self._clock()
        # No hour is active after this one, so that only those are found who have a score or a throttle.
        found = await self._database.run(scored_senders(now + 2 * HOUR, 0, MOST_WATCHED, now))
        watched = [
            WatchedSender(
                each.username,
                each.tenant,
                each.abuse_score,
                abuse_score(each.activity(now), now).signs,
                each.throttle,
                each.throttle is not None and each.throttle.is_in_force(now),
            )
            for each in found
        ]
        return sorted(watched, key=lambda each: (each.throttle is None, -each.score, each.username))

    async def results(self, window: Window) -> OutboundResults:
        """Return the results of recipients, by class and destination."""
        now = self._clock()
        return await self._database.run(load_results(self.since(window), next_hour(now), MOST_DESTINATIONS))

    async def destination_pauses(self) -> list[DestinationPause]:
        return await self._database.run(list_destination_pauses())

    async def mail(self, states: str, before: int | None, most: int) -> Page[OutgoingLine]:
        """Outgoing mail, newest first; `states` is one of MAIL_STATES."""
        found = await self._database.run(views.page_of_mail(MAIL_STATES[states], before, most + 1))
        shown = found[:most]
        return Page(shown, str(shown[-1].seq) if len(found) > most else None)

    async def conversation(self, id: UUID) -> MailConversation:
        """One mail, and what was said about its first recipients. Raises NotFound."""
        return await self._database.run(views.load_conversation(id, MOST_RECIPIENTS))


def _lane(
    lane: Lane, stats: OutboundStats, sending: Mapping[SenderLane, int], oldest_due_at: datetime | None
) -> LaneLine:
    queue, waiting = stats.queue, stats.queue.lanes[lane]
    if lane == "retry" or lane == "fifo":
        return LaneLine(lane, None, None, waiting, oldest_due_at, None)
    limit, wait = min(queue.limits[lane], queue.slots), stats.disciplines["fair"].waits.get(lane)
    return LaneLine(lane, sending.get(lane, 0), limit, waiting, oldest_due_at, wait)


class _Totals:
    """Return how much of each tenant was served, and how much waits."""

    def __init__(self, served: dict[int, int], waiting: dict[int, WaitingTenant]) -> None:
        self._served = served
        self._waiting = waiting
        self.ids = sorted(served.keys() | waiting.keys())
        self.all_served = sum(served.values())

    @classmethod
    def of(cls, service: Sequence[SenderService], waiting: Sequence[WaitingTenant]) -> "_Totals":
        served: defaultdict[int, int] = defaultdict(int)
        for each in service:
            served[each.tenant_id] += each.recipients
        return cls(dict(served), {each.tenant_id: each for each in waiting})

    def sorted_keys(self, order: TenantOrder) -> list[TenantKey]:
        """Most served first, or longest waiting first."""
        value = self._value_of_share if order == "share" else self._value_of_wait
        return sorted((TenantKey(value(id), id) for id in self.ids), key=lambda each: (-each.value, each.id))

    def _value_of_share(self, id: int) -> float:
        return self._served.get(id, 0)

    def _value_of_wait(self, id: int) -> float:
        """Higher for those who wait longer, and the same at any time, so that pages keep their place."""
        waiting = self._waiting.get(id)
        return -FAR if waiting is None or waiting.oldest_due_at is None else -waiting.oldest_due_at.timestamp()

    def line(self, tenant: views.TenantNames) -> TenantLine:
        served = self._served.get(tenant.id, 0)
        waiting = self._waiting.get(tenant.id, WaitingTenant(tenant.id, 0, 0, None))
        share = served / self.all_served if self.all_served else 0.0
        return TenantLine(*tenant, served, share, waiting.waiting, waiting.held, waiting.oldest_due_at)
