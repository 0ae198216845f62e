"""The registry of connectors: the last report of each, from its heartbeats."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from postroom.core.heartbeat import Heartbeat, Position
from postroom.core.views import Internal, Untrusted
from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.engine.filling import fill
from postroom.store.engine.reading import read_rows


@dataclass(frozen=True, slots=True)
class ConnectorView:
    """The last report of one connector instance, and when it arrived."""

    connector_type: str
    endpoint_identity: str
    instance_id: str
    version: str | None
    state: str
    error: Untrusted[str | None]
    uptime_s: float
    counters: Mapping[str, int]
    checkpoint: Untrusted[Mapping[str, Any] | None]
    first_seen_at: datetime
    last_heartbeat_at: datetime
    last_sent_at: Internal[datetime]

    @property
    def contacts_generated_at(self) -> datetime | None:
        """When the contacts that it uses were exported: how fresh they are."""
        text = (self.checkpoint or {}).get("contacts_generated_at")
        return None if text is None else datetime.fromisoformat(str(text))


@transaction
def record_heartbeat(report: Heartbeat, now: datetime) -> Script[bool]:
    """Store the report. False, and no change, if a later one of the same instance is stored already."""
    who, status = report.connector, report.status
    checkpoint = None if report.checkpoint is None else _position(report.checkpoint)
    more = {"error": status.error_message, "checkpoint_json": checkpoint}
    return bool((yield fill("upsert_connector", who, status, report, **more, now=now)))


def _position(checkpoint: Position) -> str:
    """The position in a checkpoint. A connector without contacts reports none."""
    silent = {"contacts_generated_at"} if checkpoint.contacts_generated_at is None else None
    return checkpoint.model_dump_json(exclude=silent)


@query
def list_connectors() -> Script[list[ConnectorView]]:
    """Every instance that ever reported."""
    rows = yield sql("select_connectors")
    return read_rows(ConnectorView, rows)


def last_reports(found: Iterable[ConnectorView]) -> dict[str, ConnectorView]:
    """The latest report of each endpoint; earlier instances no longer matter."""
    return {each.endpoint_identity: each for each in sorted(found, key=lambda view: view.last_heartbeat_at)}


@query
def connectors_of(endpoint_identity: str) -> Script[list[ConnectorView]]:
    """Every instance that ever reported for one endpoint."""
    rows = yield sql("select_connectors_of", endpoint_identity)
    return read_rows(ConnectorView, rows)


@transaction
def prune_connectors(before: datetime) -> Script[int]:
    """Delete instances that have been silent since before this time."""
    return len((yield sql("prune_connectors", before)))
