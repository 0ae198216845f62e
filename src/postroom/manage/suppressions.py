"""The suppression list: addresses that get no more mail of a tenant."""

from dataclasses import dataclass
from datetime import UTC, datetime

from postroom.core.errors import BadInput
from postroom.manage.database import prepare
from postroom.store import suppressions
from postroom.store.audit import Signature
from postroom.store.engine.clock import Clock, wall_clock
from postroom.store.engine.codecs import time_text
from postroom.store.engine.database import Database
from postroom.store.outbound_views import SuppressionKey, page_of_suppressions
from postroom.store.suppressions import Suppression


async def list_suppressions(database: Database, tenant: str | None, limit: int) -> list[Suppression]:
    """List suppressed addresses, newest first."""
    return await database.run(suppressions.list_suppressions(tenant, limit))


async def suppress(database: Database, tenant: str, address: str, signed: Signature, clock: Clock = wall_clock) -> None:
    """Send nothing of the tenant to this address."""
    await prepare(database)
    await database.run(suppressions.suppress(tenant, address, signed, clock()))


async def unsuppress(
    database: Database, tenant: str, address: str, signed: Signature, clock: Clock = wall_clock
) -> None:
    """Let mail of the tenant go to this address again."""
    await database.run(suppressions.unsuppress(tenant, address, signed, clock()))


@dataclass(frozen=True, slots=True)
class SuppressionPage:
    lines: list[Suppression]
    next_before: str | None


async def suppression_page(database: Database, tenant: str | None, before: str | None, most: int) -> SuppressionPage:
    """List suppressed addresses, newest first, by key. Raises BadInput for a `before` that is no place in the list."""
    last = None if before is None else _read_key(before)
    found = await database.run(page_of_suppressions(tenant, last, most + 1))
    shown = found[:most]
    return SuppressionPage(shown, _key(shown[-1]) if len(found) > most else None)


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
