"""The connectors that have reported, and whether they still do."""

from dataclasses import dataclass

from postroom.core.heartbeat import Liveness, liveness
from postroom.store.engine.database import Database
from postroom.store.intake import connectors
from postroom.store.intake.connectors import ConnectorView
from postroom.system.wall_clock import Clock, wall_clock


@dataclass(frozen=True, slots=True)
class ReportedConnector:
    """A connector's last report, and its liveness."""

    connector: ConnectorView
    liveness: Liveness


async def list_connectors(database: Database, clock: Clock = wall_clock) -> list[ReportedConnector]:
    """List every instance that has ever reported."""
    now = clock()
    found = await database.run(connectors.list_connectors())
    return [ReportedConnector(each, liveness(each.last_heartbeat_at, now)) for each in found]
