"""Outgoing mail: lanes, tenants, fairness, senders, destinations and bounces; and the conversation about one mail."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from uuid import UUID

from starlette.routing import Route

from postroom.core.errors import BadInput, NotFound
from postroom.interfaces.dashboard.charts import Part, Series
from postroom.interfaces.dashboard.forms import Done, Form, form_route
from postroom.interfaces.dashboard.ids import read_id
from postroom.interfaces.dashboard.outbound_counts import CLASSES_OF_FAILURE, Counts
from postroom.interfaces.dashboard.page import Page
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.dashboard.visit import Visit
from postroom.operations.outbound.destinations import pause_destination, resume_destination
from postroom.operations.outbound.outbound import cancel_mail, resolve_mail, send_mail_now
from postroom.operations.outbound.outbound_overview import (
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
    release_sender,
    throttle_sender_for,
)
from postroom.operations.outbound.suppressions import list_suppressions, suppress, unsuppress
from postroom.operations.outbound.tenants import pause_tenant, resume_tenant
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


def pages(site: Site) -> list[Page]:
    return [OutboundPage(site), OutgoingMailPage(site)]


class OutboundPage(Page):
    address, title, template = "/outbound", "Outbound", "outbound.html"

    def changes(self) -> AsyncIterator[None]:
        return self._parts.outbound.changes()

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
        lists = asyncio.gather(self._tenant(tenant_name), self._mail(visit), self._suppressed(visit))
        (queue, results, evenness, watched, paused), (tenant, mail, suppressed) = await asyncio.gather(figures, lists)
        following = queue.tenants.next
        failures = [each for each in results.classes if each.result in CLASSES_OF_FAILURE]
        return {
            "window": window,
            "order": order,
            "queue": queue,
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

    async def _suppressed(self, visit: Visit) -> dict[str, object]:
        before = visit.text("older")
        page = await list_suppressions(
            self._database, self._parts.clock, visit.text("tenant"), before, SUPPRESSED_SHOWN
        )
        return {
            "suppressed": page.lines,
            "suppressed_next": visit.with_filters(older=page.next) if page.next else None,
            "suppressed_first": visit.with_filters(older=None) if before else None,
        }

    def actions(self) -> list[Route]:
        site = self._site
        return [
            form_route(site, "/outbound/senders/throttle", self._throttle),
            form_route(site, "/outbound/senders/release", self._release),
            form_route(site, "/outbound/suppress", self._suppress),
            form_route(site, "/outbound/unsuppress", self._unsuppress),
            form_route(site, "/outbound/destinations/pause", self._pause_destination),
            form_route(site, "/outbound/destinations/resume", self._resume_destination, again=True),
            form_route(site, "/outbound/tenants/pause", self._pause_tenant),
            form_route(site, "/outbound/tenants/resume", self._resume_tenant, again=True),
        ]

    async def _throttle(self, form: Form) -> Done:
        username = form.required("username", "name the sender, such as ada@example.com")
        hours = form.text("hours")
        if not hours.isascii() or not hours.isdecimal() or len(hours) > 6:
            raise BadInput("hours", f"{hours[:20]!r} is no number of hours", "write it in digits, such as 24")
        view = await throttle_sender_for(form.by, username, int(hours))
        return Done(f"{view.username} is throttled for {int(hours)} h.")

    async def _release(self, form: Form) -> Done:
        return Done((await release_sender(form.by, form.required("username", "name the sender"))).done)

    async def _suppress(self, form: Form) -> Done:
        tenant = form.required("tenant", "name the tenant whose mail it is")
        address = form.required("address", "give one such as ada@example.com")
        return Done((await suppress(form.by, tenant, address)).done)

    async def _unsuppress(self, form: Form) -> Done:
        tenant, address = form.required("tenant", "name the tenant"), form.required("address", "name the address")
        return Done((await unsuppress(form.by, tenant, address)).done)

    async def _pause_destination(self, form: Form) -> Done:
        destination = form.required("destination", "give one such as example.com")
        await pause_destination(form.by, destination)
        return Done(f"Nothing is sent to {destination} until it is resumed.")

    async def _resume_destination(self, form: Form) -> Done:
        destination = form.required("destination", "give one such as example.com")
        await resume_destination(form.by, destination)
        return Done(f"Mail to {destination} goes on within half a minute.")

    async def _pause_tenant(self, form: Form) -> Done:
        view = await pause_tenant(form.by, form.required("tenant", "name the tenant"))
        return Done(f"Nothing of {view.name} is accepted or sent until it is resumed.")

    async def _resume_tenant(self, form: Form) -> Done:
        view = await resume_tenant(form.by, form.required("tenant", "name the tenant"))
        return Done(f"Mail of {view.name} goes on.")


class OutgoingMailPage(Page):
    """One mail: its recipients, the attempts, and what their servers said."""

    address, title, template = "/outbound/{message}", "Outgoing mail", "outbound/conversation.html"

    def changes(self) -> AsyncIterator[None]:
        return self._parts.outbound.changes()

    async def read(self, visit: Visit) -> Mapping[str, object]:
        found = await self._parts.outbound.conversation(_mail_id(visit.parameters))
        shown = {"mail": found.mail, "recipients": found.recipients, "attempts": found.attempts[::-1]}
        return {**shown, "most_recipients": MOST_RECIPIENTS, **MAIL_WORDS}

    def actions(self) -> list[Route]:
        site = self._site
        return [
            form_route(site, "/outbound/{message}/cancel", self._cancel),
            form_route(site, "/outbound/{message}/send-now", self._send_now),
            form_route(site, "/outbound/{message}/resolve", self._resolve),
        ]

    async def _cancel(self, form: Form) -> Done:
        return Done((await cancel_mail(form.by, _mail_id(form.parameters))).done)

    async def _send_now(self, form: Form) -> Done:
        return Done((await send_mail_now(form.by, _mail_id(form.parameters))).done)

    async def _resolve(self, form: Form) -> Done:
        match form.text("outcome"):
            case "sent" | "not_sent" as outcome:
                return Done((await resolve_mail(form.by, _mail_id(form.parameters), outcome)).done)
            case other:
                raise BadInput("outcome", f"{other[:20]!r} is none", "say sent or not_sent")


def _fairness(hours: list[EvennessHour]) -> list[Series]:
    return [
        Series("Jain", [each.jain for each in hours], "acc"),
        Series("Gini", [each.gini for each in hours], "def"),
    ]


def _mail_id(parameters: Mapping[str, str]) -> UUID:
    return read_id(parameters["message"], NotFound("there is no such outgoing mail"))
