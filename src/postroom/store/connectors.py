"""The registry of connectors: the last report of each, from its heartbeats."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from postroom.core.heartbeat import Heartbeat, Position
from postroom.store.engine.codecs import json_text
from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.engine.reading import read_rows


@dataclass(frozen=True, slots=True)
class ConnectorView:
    """What one instance of a connector last said of itself, and when we heard it."""

    connector_type: str
    endpoint_identity: str
    instance_id: str
    version: str | None
    state: str
    error: str | None
    uptime_s: float
    counters: Mapping[str, int]
    checkpoint: Mapping[str, Any] | None
    first_seen_at: datetime
    last_heartbeat_at: datetime
    last_sent_at: datetime

    @property
    def contacts_generated_at(self) -> datetime | None:
        """When the contacts that it goes by were made: how fresh they are."""
        text = (self.checkpoint or {}).get("contacts_generated_at")
        return None if text is None else datetime.fromisoformat(str(text))


@transaction
def record_heartbeat(report: Heartbeat, now: datetime) -> Script[bool]:
    """Keeps the report. False when a later one of the same instance is here already, and nothing changed."""
    who, status = report.connector, report.status
    taken = yield sql(
        "upsert_connector",
        who.connector_type,
        who.endpoint_identity,
        who.instance_id,
        who.version,
        status.state,
        status.error_message,
        status.uptime_s,
        json_text(report.counters),
        None if report.checkpoint is None else _position(report.checkpoint),
        report.sent_at,
        now,
    )
    return bool(taken)


def _position(checkpoint: Position) -> str:
    """A connector that knows no contacts says nothing of them."""
    silent = {"contacts_generated_at"} if checkpoint.contacts_generated_at is None else None
    return checkpoint.model_dump_json(exclude=silent)


@query
def list_connectors() -> Script[list[ConnectorView]]:
    """Every instance that ever reported."""
    rows = yield sql("select_connectors")
    return read_rows(ConnectorView, rows)


def last_reports(found: Iterable[ConnectorView]) -> dict[str, ConnectorView]:
    """Of each endpoint the instance that was heard last: what ran elsewhere before says nothing any more."""
    return {each.endpoint_identity: each for each in sorted(found, key=lambda view: view.last_heartbeat_at)}


@query
def connectors_of(endpoint_identity: str) -> Script[list[ConnectorView]]:
    """Every instance that ever reported for one endpoint."""
    rows = yield sql("select_connectors_of", endpoint_identity)
    return read_rows(ConnectorView, rows)


@transaction
def prune_connectors(before: datetime) -> Script[int]:
    """Forgets instances that have been silent for long."""
    return len((yield sql("prune_connectors", before)))
