"""The suppression list: addresses that get no more mail of a tenant."""

from datetime import UTC, datetime
from typing import Annotated

from postroom.core.access import OPERATE, READ
from postroom.core.errors import BadInput
from postroom.core.outbound.strikes import StrikeRule
from postroom.core.views import Done, Page
from postroom.operations.caller import Caller
from postroom.operations.installation.database import prepare
from postroom.operations.nouns import OUTBOUND
from postroom.operations.operation import Argument, Limit, Next, command, form, get, post
from postroom.operations.outbound.tenants import TenantName, load_tenant
from postroom.store.engine.codecs import time_text
from postroom.store.engine.database import Database
from postroom.store.outbound import suppressions
from postroom.store.outbound.outbound_views import SuppressionKey, page_of_suppressions
from postroom.store.outbound.suppressions import StruckAddress, Suppression
from postroom.system.wall_clock import Clock

Tenant = Annotated[str | None, Argument("Only those of this tenant.")]
Address = Annotated[str, Argument("The address, such as ada@example.com.")]


@OUTBOUND.operation(
    READ,
    get("/outbound/suppressions"),
    command("suppression list", "tenant", "address", "cause", "detail", "created_at", "expires_at"),
)
async def list_suppressions(
    database: Database, clock: Clock, /, tenant: Tenant = None, next: Next = None, limit: Limit = 50
) -> Page[Suppression]:
    """List addresses that get no more mail of a tenant, the newest first."""
    last = None if next is None else _read_key(next)
    found = await database.run(page_of_suppressions(tenant, last, limit + 1))
    shown = found[:limit]
    holding = [each for each in shown if each.holds(clock())]
    return Page(holding, _key(shown[-1]) if len(found) > limit else None)


@OUTBOUND.operation(READ, command("suppression strikes", "tenant", "address", "days", "last_at", "last_reply"))
async def list_strikes(
    database: Database, clock: Clock, rule: StrikeRule, /, tenant: Tenant = None, limit: Limit = 50
) -> list[StruckAddress]:
    """List addresses that were refused without a reason, and on how many days. They still get mail."""
    return await database.run(suppressions.list_strikes(tenant, rule.since(clock()), limit))


@OUTBOUND.operation(
    OPERATE,
    post("/outbound/suppressions"),
    form("/outbound/suppress"),
    command("suppression add {tenant} {address}"),
    signs=True,
)
async def suppress(by: Caller, /, tenant: TenantName, address: Address) -> Done:
    """Send nothing of a tenant to an address. Safe to repeat."""
    await prepare(by.database)
    known = await load_tenant(by.database, tenant)
    await by.run(suppressions.suppress(known.name, address, by.signature, by.clock()))
    return Done(f"{address} gets no more mail of {known.name}.")


@OUTBOUND.operation(
    OPERATE,
    post("/outbound/suppressions/remove"),
    form("/outbound/unsuppress"),
    command("suppression remove {tenant} {address}"),
    signs=True,
)
async def unsuppress(by: Caller, /, tenant: TenantName, address: Address) -> Done:
    """Let mail of a tenant go to an address again, and forget its strikes."""
    await by.run(suppressions.unsuppress(tenant, address, by.signature, by.clock()))
    return Done(f"{address} may get mail of {tenant} again.")


def _key(line: Suppression) -> str:
    return f"{time_text(line.created_at)}/{line.tenant}/{line.address}"


def _read_key(text: str) -> SuppressionKey:
    moment, _, rest = text.partition("/")
    tenant, _, address = rest.partition("/")
    try:
        at = datetime.fromisoformat(moment)
    except ValueError:
        raise BadInput("next", f"{text[:40]!r} is no place in this list", "use that of the page before") from None
    return SuppressionKey(at.replace(tzinfo=UTC) if at.tzinfo is None else at, tenant, address)
