"""The connectors that have reported, and whether they still do."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from postroom.core.access import READ
from postroom.core.heartbeat import Liveness, liveness
from postroom.operations.nouns import CONNECTORS
from postroom.operations.operation import READS, command, tool
from postroom.store.engine.database import Database
from postroom.store.intake import connectors
from postroom.store.intake.connectors import ConnectorView
from postroom.system.wall_clock import Clock

LISTED = ("type", "identity", "instance", "liveness", "state", "last_heartbeat", "counters", "checkpoint", "contacts")


# The tool shows the checkpoint outside the untrusted fields.
@dataclass(frozen=True, slots=True)
class ReportedConnector(ConnectorView):
    checkpoint: Mapping[str, Any] | None
    liveness: Liveness


class ReportedConnectors(NamedTuple):
    connectors: Sequence[ReportedConnector]


def _cells(connector: ReportedConnector) -> Mapping[str, object]:
    return {
        "type": connector.connector_type,
        "identity": connector.endpoint_identity,
        "instance": connector.instance_id,
        "liveness": connector.liveness,
        "state": connector.state,
        "last_heartbeat": connector.last_heartbeat_at,
        "counters": " ".join(f"{name}={count}" for name, count in sorted(connector.counters.items())),
        "checkpoint": (connector.checkpoint or {}).get("cursor"),
        "contacts": connector.contacts_generated_at,
    }


@CONNECTORS.operation(READ, command("connector list", *LISTED, row=asdict, cells=_cells))
async def list_connectors(database: Database, clock: Clock, /) -> list[ReportedConnector]:
    """List all connectors that have reported, and whether they still do."""
    now = clock()
    found = await database.run(connectors.list_connectors())
    return [ReportedConnector(**asdict(each), liveness=liveness(each.last_heartbeat_at, now)) for each in found]


@CONNECTORS.operation(READ, tool("connector.list", "List the connectors", READS))
async def list_reported_connectors(database: Database, clock: Clock, /) -> ReportedConnectors:
    """Lists every connector that ever reported, whether it is online, stale or offline, and its last report."""
    return ReportedConnectors(await list_connectors(database, clock))
