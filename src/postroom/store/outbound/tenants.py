"""Tenants: on whose account mail is sent, with their domains, their weight, and whether they are paused."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from postroom.core.errors import Conflict, NotFound
from postroom.core.views import Untrusted
from postroom.store.engine.database import Notify, Script, query, sql, transaction
from postroom.store.engine.reading import read_row
from postroom.store.outbound.outbound_signals import CHANNEL
from postroom.store.outbound.outbound_turns import holding_tenant, weighing_tenant
from postroom.store.people.audit import Signature, auditing

TenantState = Literal["active", "paused"]


@dataclass(frozen=True, slots=True)
class TenantView:
    """A tenant as it is shown, with its domains and the number of its senders."""

    id: int
    name: str
    domains: tuple[str, ...]
    senders: int
    weight: float
    state: TenantState
    state_reason: Untrusted[str | None]
    created_at: datetime
    updated_at: datetime


@transaction
def add_tenant(
    name: str, domains: Sequence[str], weight: float, signed: Signature, now: datetime
) -> Script[TenantView]:
    """Add a tenant with new domains. Raises Conflict if its name or a domain is taken."""
    added = yield sql("insert_tenant", name, weight, now)
    if not added:
        raise Conflict("tenant", f"there is already a tenant {name}", f"see `postroom tenant show {name}`")
    tenant_id = added[0][0]
    for domain in domains:
        yield from adding_domain(tenant_id, domain, now)
    after = {"name": name, "domains": list(domains), "weight": weight}
    yield from auditing(signed.under("tenant.add", "tenant", str(tenant_id), after=after), now)
    return (yield from _showing(name))[0]


def adding_domain(tenant_id: int, domain: str, now: datetime) -> Script[int]:
    """Part of a transaction: add a domain to a tenant; return its id."""
    added = yield sql("insert_sender_domain", tenant_id, domain, now)
    if not added:
        for _id, tenant in (yield sql("select_sender_domain", domain)):
            raise Conflict("domain", f"{domain} belongs to the tenant {tenant}", "use another domain, or that tenant")
    return added[0][0]


def tenant_for(name: str, now: datetime) -> Script[int]:
    """Part of a transaction: the id of the tenant with this name, which is made if there is none."""
    yield sql("insert_tenant", name, 1.0, now)
    return (yield sql("lock_tenant", name))[0][0]


@query
def list_tenants() -> Script[list[TenantView]]:
    """By name."""
    return (yield from _showing(None))


@query
def load_tenant(name: str) -> Script[TenantView]:
    for view in (yield from _showing(name)):
        return view
    raise NotFound(f"there is no tenant {name}; `postroom tenant list` lists them")


@transaction
def pause_tenant(name: str, signed: Signature, now: datetime) -> Script[TenantView]:
    """Accept and send nothing for the tenant, for the reason in the signature. Mail that waits is kept."""
    return (yield from _moving(name, "paused", signed, now))


@transaction
def resume_tenant(name: str, signed: Signature, now: datetime) -> Script[TenantView]:
    """Accept and send mail of the tenant again."""
    return (yield from _moving(name, "active", signed, now))


def _moving(name: str, state: TenantState, signed: Signature, now: datetime) -> Script[TenantView]:
    yield sql("lock_tenant", name)
    before = yield from load_tenant.script(name)
    reason = signed.reason if state == "paused" else None
    if (before.state, before.state_reason) != (state, reason):
        yield sql("move_tenant", before.id, state, reason, now)
        yield from holding_tenant(before.id, state == "paused")
        action = "tenant.pause" if state == "paused" else "tenant.resume"
        states = {"before": {"state": before.state}, "after": {"state": state}}
        yield from auditing(signed.under(action, "tenant", str(before.id), **states), now)
        yield Notify(CHANNEL, "tenants")
    return (yield from load_tenant.script(name))


@transaction
def weigh_tenant(name: str, weight: float, signed: Signature, now: datetime) -> Script[TenantView]:
    """Give the tenant a share in proportion to this weight; one of weight 2 sends twice as much as one of weight 1."""
    yield sql("lock_tenant", name)
    before = yield from load_tenant.script(name)
    yield sql("weigh_tenant", before.id, weight, now)
    yield from weighing_tenant(before.id, weight)
    weights = {"before": {"weight": before.weight}, "after": {"weight": weight}}
    yield from auditing(signed.under("tenant.weight", "tenant", str(before.id), **weights), now)
    yield Notify(CHANNEL, "tenants")
    return (yield from load_tenant.script(name))


def _showing(name: str | None) -> Script[list[TenantView]]:
    domains: defaultdict[int, list[str]] = defaultdict(list)
    for tenant_id, domain in (yield sql("select_tenant_domains", name)):
        domains[tenant_id].append(domain)
    rows = yield sql("select_tenants", name)
    return [read_row(TenantView, row, domains=tuple(domains[row["id"]])) for row in rows.by_name()]
