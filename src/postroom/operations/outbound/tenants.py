"""Tenants: add, list, pause and resume them, and set their weight."""

import re
from collections.abc import Sequence
from typing import Annotated

from postroom.core.access import ANSWER_AGAIN, OPERATE, READ
from postroom.core.errors import BadInput
from postroom.core.mail.addresses import canonical
from postroom.operations.caller import Caller
from postroom.operations.installation.database import prepare
from postroom.operations.nouns import OUTBOUND
from postroom.operations.operation import Argument, command, form, post
from postroom.store.engine.database import Database
from postroom.store.outbound import tenants
from postroom.store.outbound.sender_notices import SYSTEM
from postroom.store.outbound.tenants import TenantView

LIGHTEST, HEAVIEST = 0.01, 100.0
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,127}")


TenantName = Annotated[str, Argument("The name of the tenant.")]
LINE = "{name}  {state}, weight {weight:g}"


@OUTBOUND.operation(OPERATE, command("tenant add {tenant}", line=LINE))
async def add_tenant(
    by: Caller,
    /,
    tenant: TenantName,
    domain: Annotated[Sequence[str], Argument("A domain that sends on the tenant's account; repeatable.")] = (),
    weight: Annotated[float, Argument("The tenant's share against others, from 0.01 to 100.")] = 1.0,
) -> TenantView:
    """Add a tenant. A domain without a tenant is a tenant of its own; this groups several under one."""
    checked = [checked_domain(each) for each in domain]
    await prepare(by.database)
    return await by.run(
        tenants.add_tenant(checked_name(tenant), checked, checked_weight(weight), by.signature, by.clock())
    )


@OUTBOUND.operation(READ, command("tenant list", "id", "name", "domains", "senders", "weight", "state", "state_reason"))
async def list_tenants(database: Database, /) -> list[TenantView]:
    """List the tenants."""
    return await database.run(tenants.list_tenants())


@OUTBOUND.operation(READ, command("tenant show {tenant}"))
async def load_tenant(database: Database, /, tenant: TenantName) -> TenantView:
    """Show one tenant."""
    return await database.run(tenants.load_tenant(tenant.lower()))


@OUTBOUND.operation(
    OPERATE,
    post("/outbound/tenants/{tenant}/pause"),
    form("/outbound/tenants/pause", "Nothing of {name} is accepted or sent until it is resumed."),
    command("tenant pause {tenant}", line=LINE),
    signs=True,
)
async def pause_tenant(by: Caller, /, tenant: TenantName) -> TenantView:
    """Accept and send nothing for a tenant; mail that waits is kept. Safe to repeat."""
    return await by.run(tenants.pause_tenant(tenant.lower(), by.signature, by.clock()))


@OUTBOUND.operation(
    ANSWER_AGAIN,
    post("/outbound/tenants/{tenant}/resume"),
    form("/outbound/tenants/resume", "Mail of {name} goes on."),
    command("tenant resume {tenant}", line=LINE),
)
async def resume_tenant(by: Caller, /, tenant: TenantName) -> TenantView:
    """Accept and send mail of a tenant again. Safe to repeat."""
    return await by.run(tenants.resume_tenant(tenant.lower(), by.signature, by.clock()))


@OUTBOUND.operation(OPERATE, command("tenant weight {tenant} {weight}", line=LINE))
async def weigh_tenant(
    by: Caller,
    /,
    tenant: TenantName,
    weight: Annotated[float, Argument("From 0.01 to 100; 2 sends twice as much as 1.")],
) -> TenantView:
    """Set a tenant's weight: its share while several tenants have mail waiting."""
    return await by.run(tenants.weigh_tenant(tenant.lower(), checked_weight(weight), by.signature, by.clock()))


def checked_name(name: str) -> str:
    """The name of a tenant in lower case. Raises BadInput if it cannot be one."""
    lower = name.strip().lower()
    if not _NAME.fullmatch(lower):
        raise BadInput("tenant", f"{name[:200]!r} is no name", "use letters, digits, dots, hyphens and underscores")
    return _check_unreserved("tenant", lower)


def checked_domain(domain: str) -> str:
    """The canonical form of a domain. Raises BadInput if it is none."""
    found = canonical(f"x@{domain.strip()}")
    if found is None or "[" in domain:
        raise BadInput("domain", f"{domain[:200]!r} is no domain", "write one such as example.com")
    return _check_unreserved("domain", found.rpartition("@")[2])


def checked_weight(weight: float) -> float:
    if not LIGHTEST <= weight <= HEAVIEST:
        raise BadInput("weight", f"{weight:g} is out of range", f"use a number from {LIGHTEST} to {HEAVIEST:g}")
    return weight


def _check_unreserved(field: str, name: str) -> str:
    if name == SYSTEM:
        raise BadInput(field, f"{name} is Postroom's own", "use another name")
    return name
