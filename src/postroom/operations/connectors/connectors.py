"""The connectors that have reported, and whether they still do."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from postroom.core.access import READ
from postroom.core.heartbeat import Liveness, liveness
from postroom.operations.nouns import CONNECTORS
from postroom.operations.operation import command
from postroom.store.engine.database import Database
from postroom.store.intake import connectors
from postroom.store.intake.connectors import ConnectorView
from postroom.system.wall_clock import Clock


@dataclass(frozen=True, slots=True)
class ReportedConnector:
    """A connector's last report, and its liveness."""

    connector: ConnectorView
    liveness: Liveness


LISTED = ("type", "identity", "instance", "liveness", "state", "last_heartbeat", "counters", "checkpoint", "contacts")


def _row(reported: ReportedConnector) -> Mapping[str, object]:
    return {**asdict(reported.connector), "liveness": reported.liveness}


def _cells(reported: ReportedConnector) -> Mapping[str, object]:
    connector = reported.connector
    return {
        "type": connector.connector_type,
        "identity": connector.endpoint_identity,
        "instance": connector.instance_id,
        "liveness": reported.liveness,
        "state": connector.state,
        "last_heartbeat": connector.last_heartbeat_at,
        "counters": " ".join(f"{name}={count}" for name, count in sorted(connector.counters.items())),
        "checkpoint": (connector.checkpoint or {}).get("cursor"),
        "contacts": connector.contacts_generated_at,
    }


@CONNECTORS.operation(READ, command("connector list", *LISTED, row=_row, cells=_cells))
async def list_connectors(database: Database, clock: Clock, /) -> list[ReportedConnector]:
    """List all connectors that have reported, and whether they still do."""
    now = clock()
    found = await database.run(connectors.list_connectors())
    return [ReportedConnector(each, liveness(each.last_heartbeat_at, now)) for each in found]
