"""The suppression list: addresses that get no more mail of a tenant."""

from datetime import UTC, datetime

from postroom.core.errors import BadInput
from postroom.core.outbound.strikes import StrikeRule
from postroom.core.views import Page
from postroom.operations.caller import Caller
from postroom.operations.installation.database import prepare
from postroom.store.engine.clock import Clock, wall_clock
from postroom.store.engine.codecs import time_text
from postroom.store.engine.database import Database
from postroom.store.outbound import suppressions
from postroom.store.outbound.outbound_views import SuppressionKey, page_of_suppressions
from postroom.store.outbound.suppressions import StruckAddress, Suppression

__all__ = [
    "StruckAddress",
    "Suppression",
    "list_strikes",
    "list_suppressions",
    "suppress",
    "suppression_page",
    "unsuppress",
]


async def list_suppressions(
    database: Database, tenant: str | None, limit: int, clock: Clock = wall_clock
) -> list[Suppression]:
    """List suppressed addresses, newest first."""
    found = await database.run(suppressions.list_suppressions(tenant, limit))
    return [each for each in found if each.holds(clock())]


async def list_strikes(
    database: Database, tenant: str | None, limit: int, rule: StrikeRule, clock: Clock = wall_clock
) -> list[StruckAddress]:
    """List addresses that were refused without a reason, and are not suppressed for it yet. The last one is first."""
    return await database.run(suppressions.list_strikes(tenant, rule.since(clock()), limit))


async def suppress(by: Caller, tenant: str, address: str) -> None:
    """Send nothing of the tenant to this address."""
    await prepare(by.database)
    await by.run(suppressions.suppress(tenant, address, by.signature, by.clock()))


async def unsuppress(by: Caller, tenant: str, address: str) -> None:
    """Let mail of the tenant go to this address again."""
    await by.run(suppressions.unsuppress(tenant, address, by.signature, by.clock()))


async def suppression_page(
    database: Database, tenant: str | None, before: str | None, most: int, clock: Clock = wall_clock
) -> Page[Suppression]:
    """List suppressed addresses, newest first, by key. Raises BadInput for a `before` that is no place in the list."""
    last = None if before is None else _read_key(before)
    found = await database.run(page_of_suppressions(tenant, last, most + 1))
    shown = found[:most]
    holding = [each for each in shown if each.holds(clock())]
    return Page(holding, _key(shown[-1]) if len(found) > most else None)


def _key(line: Suppression) -> str:
    return f"{time_text(line.created_at)}/{line.tenant}/{line.address}"


def _read_key(text: str) -> SuppressionKey:
    moment, _, rest = text.partition("/")
    tenant, _, address = rest.partition("/")
    try:
        at = datetime.fromisoformat(moment)
    except ValueError:
        raise BadInput("before", f"{text[:40]!r} is no place in this list", "use that of the page before") from None
    return SuppressionKey(at.replace(tzinfo=UTC) if at.tzinfo is None else at, tenant, address)
