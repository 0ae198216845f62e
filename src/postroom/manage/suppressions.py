"""The suppression list: addresses that get no more mail of a tenant."""

from postroom.manage.database import prepare
from postroom.store import suppressions
from postroom.store.audit import Signature
from postroom.store.engine.clock import Clock, wall_clock
from postroom.store.engine.database import Database
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
