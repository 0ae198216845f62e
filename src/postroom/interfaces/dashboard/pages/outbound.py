"""Outgoing mail: lanes, tenants, fairness, senders, destinations and bounces; and the conversation about one mail."""

import asyncio
from collections.abc import Mapping
from uuid import UUID

from postroom.core.errors import NotFound
from postroom.interfaces.dashboard.charts import Part, Series
from postroom.interfaces.dashboard.ids import read_id
from postroom.interfaces.dashboard.outbound_counts import CLASSES_OF_FAILURE, Counts
from postroom.interfaces.dashboard.page import DashboardPage
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.dashboard.visit import Visit
from postroom.operations.outbound.outbound_overview import (
    CHANNELS,
    MAIL_STATES,
    MOST_DESTINATIONS,
    MOST_RECIPIENTS,
    WINDOWS,
    EvennessHour,
    TenantKey,
    TenantOrder,
    Window,
)
from postroom.operations.outbound.senders import (
    TenantSenders,
    load_tenant_senders,
)
from postroom.operations.outbound.suppressions import list_suppressions
from postroom.words import outbound as words

WORDS: Mapping[str, object] = {
    "windows": tuple((name, name.replace("h", " h").replace("d", " d")) for name in WINDOWS),
    "states": tuple((name, name) for name in MAIL_STATES),
    "stages": words.STAGES,
    "conditions": words.CONDITIONS,
    "lane_words": words.LANES,
    "moods": words.MAIL_MOODS,
    "cause_words": words.SUPPRESSION_CAUSES,
    "result_words": words.RESULTS,
    "class_words": words.BOUNCE_CLASSES,
    "most_destinations": MOST_DESTINATIONS,
}
MAIL_WORDS: Mapping[str, object] = {name: WORDS[name] for name in ("moods", "class_words")}
ORDERS: tuple[TenantOrder, ...] = ("share", "wait")
TENANTS_SHOWN = 25
MAIL_SHOWN = 25
SUPPRESSED_SHOWN = 15
NEWEST_SEQ = 2**62


def pages(site: Site) -> list[DashboardPage]:
    return [OutboundPage(site), OutgoingMailPage(site)]


class OutboundPage(DashboardPage):
    address, title, template = "/outbound", "Outbound", "outbound.html"
    channels = CHANNELS

    async def read(self, visit: Visit) -> Mapping[str, object]:
        window: Window = visit.choice("window", tuple(WINDOWS), "1h")
        order: TenantOrder = visit.choice("order", ORDERS, "share")
        after, tenant_name = visit.text("after"), visit.text("tenant")
        # None depends on another, so PostgreSQL can answer them side by side.
        figures = asyncio.gather(
            self._parts.outbound.queue(window, order, TenantKey.read(after) if after else None, TENANTS_SHOWN),
            self._parts.outbound.results(window),
            self._parts.outbound.evenness(window),
            self._parts.outbound.watched(),
            self._parts.outbound.destination_pauses(),
        )
        lists = asyncio.gather(self._tenant(tenant_name), self._mail(visit), self._suppressions(visit))
        (queue, results, evenness, watched, paused), (tenant, mail, suppressed) = await asyncio.gather(figures, lists)
        following = queue.tenants.next
        failures = [each for each in results.classes if each.result in CLASSES_OF_FAILURE]
        return {
            "window": window,
            "order": order,
            "queue": queue,
            "troubles": [words.trouble_in_words(each) for each in queue.stats.health.troubles],
            "q_held": queue.stats.abuse.mail_held,
            "tenants_next": visit.with_filters(after=following) if following else None,
            "tenants_first": visit.with_filters(after=None) if after else None,
            "evenness": evenness,
            "fairness_series": _fairness(evenness),
            "results": results,
            "counts": Counts.of(results.classes),
            "classes": failures,
            "classes_sum": sum(each.count for each in failures),
            "paused": paused,
            "paused_names": {each.destination for each in paused},
            "watched": watched,
            "threshold": self._parts.outbound.threshold,
            "tenant": tenant,
            **mail,
            **suppressed,
            "part": Part,
            **WORDS,
        }

    async def _tenant(self, name: str | None) -> TenantSenders | None:
        if name is None:
            return None
        return await load_tenant_senders(self._database, self._parts.clock, name)

    async def _mail(self, visit: Visit) -> dict[str, object]:
        state = visit.choice("state", tuple(MAIL_STATES), "all")
        before = visit.number("before", 0, NEWEST_SEQ) or None
        page = await self._parts.outbound.mail(state, before, MAIL_SHOWN)
        return {
            "state": state,
            "mail": page.lines,
            "mail_next": visit.with_filters(before=page.next) if page.next else None,
            "mail_first": visit.with_filters(before=None) if before else None,
        }

    async def _suppressions(self, visit: Visit) -> dict[str, object]:
        before = visit.text("older")
        page = await list_suppressions(
            self._database, self._parts.clock, visit.text("tenant"), before, SUPPRESSED_SHOWN
        )
        return {
            "suppressed": page.lines,
            "suppressed_next": visit.with_filters(older=page.next) if page.next else None,
            "suppressed_first": visit.with_filters(older=None) if before else None,
        }


class OutgoingMailPage(DashboardPage):
    """One mail: its recipients, the attempts, and what their servers said."""

    address, title, template = "/outbound/{message}", "Outgoing mail", "outbound/conversation.html"
    channels = CHANNELS

    async def read(self, visit: Visit) -> Mapping[str, object]:
        found = await self._parts.outbound.conversation(_mail_id(visit.parameters))
        shown = {"mail": found.mail, "recipients": found.recipients, "attempts": found.attempts[::-1]}
        return {**shown, "most_recipients": MOST_RECIPIENTS, **MAIL_WORDS}


def _fairness(hours: list[EvennessHour]) -> list[Series]:
    return [
        Series("Jain", [each.jain for each in hours], "acc"),
        Series("Gini", [each.gini for each in hours], "def"),
    ]


def _mail_id(parameters: Mapping[str, str]) -> UUID:
    return read_id(parameters["message"], NotFound("there is no such outgoing mail"))
