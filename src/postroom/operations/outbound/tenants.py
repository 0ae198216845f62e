"""Tenants: add, list, pause and resume them, and set their weight."""

import re
from collections.abc import Sequence

from postroom.core.errors import BadInput
from postroom.core.mail.addresses import canonical
from postroom.operations.caller import Caller
from postroom.operations.installation.database import prepare
from postroom.store.engine.database import Database
from postroom.store.outbound import tenants
from postroom.store.outbound.sender_notices import SYSTEM
from postroom.store.outbound.tenants import TenantView

__all__ = ["TenantView", "add_tenant", "list_tenants", "load_tenant", "pause_tenant", "resume_tenant", "weigh_tenant"]

LIGHTEST, HEAVIEST = 0.01, 100.0
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,127}")


async def add_tenant(by: Caller, name: str, domains: Sequence[str], weight: float) -> TenantView:
    """Add a tenant with the domains that send on its account."""
    checked = [checked_domain(domain) for domain in domains]
    await prepare(by.database)
    return await by.run(
        tenants.add_tenant(checked_name(name), checked, checked_weight(weight), by.signature, by.clock())
    )


async def list_tenants(database: Database) -> list[TenantView]:
    return await database.run(tenants.list_tenants())


async def load_tenant(database: Database, name: str) -> TenantView:
    return await database.run(tenants.load_tenant(name.lower()))


async def pause_tenant(by: Caller, name: str) -> TenantView:
    """Accept and send nothing for a tenant, for the reason in the signature."""
    return await by.run(tenants.pause_tenant(name.lower(), by.signature, by.clock()))


async def resume_tenant(by: Caller, name: str) -> TenantView:
    """Accept and send mail of a tenant again."""
    return await by.run(tenants.resume_tenant(name.lower(), by.signature, by.clock()))


async def weigh_tenant(by: Caller, name: str, weight: float) -> TenantView:
    """Set the weight of a tenant against the others."""
    return await by.run(tenants.weigh_tenant(name.lower(), checked_weight(weight), by.signature, by.clock()))


def checked_name(name: str) -> str:
    """The name of a tenant in lower case. Raises BadInput if it cannot be one."""
    lower = name.strip().lower()
    if not _NAME.fullmatch(lower):
        raise BadInput("tenant", f"{name[:200]!r} is no name", "use letters, digits, dots, hyphens and underscores")
    return _unreserved("tenant", lower)


def checked_domain(domain: str) -> str:
    """The canonical form of a domain. Raises BadInput if it is none."""
    found = canonical(f"x@{domain.strip()}")
    if found is None or "[" in domain:
        raise BadInput("domain", f"{domain[:200]!r} is no domain", "write one such as example.com")
    return _unreserved("domain", found.rpartition("@")[2])


def checked_weight(weight: float) -> float:
    if not LIGHTEST <= weight <= HEAVIEST:
        raise BadInput("weight", f"{weight:g} is out of range", f"use a number from {LIGHTEST} to {HEAVIEST:g}")
    return weight


def _unreserved(field: str, name: str) -> str:
    if name == SYSTEM:
        raise BadInput(field, f"{name} is Postroom's own", "use another name")
    return name
