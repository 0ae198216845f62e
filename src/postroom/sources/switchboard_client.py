"""The switchboard as connectors see it, in this process or another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple, Protocol
from uuid import UUID

from postroom.core.backfill.cursor import BackfillCursor
from postroom.core.backfill.window import Window
from postroom.core.errors import PostroomError
from postroom.core.mail.ingestion import IngestionRule


class Receipt(NamedTuple):
    """The confirmation that the switchboard has stored an envelope."""

    request_id: UUID
    duplicate: bool


class SwitchboardClient(Protocol):
    """The tools of the switchboard that connectors use."""

    async def ingest(self, envelope: Mapping[str, Any]) -> Receipt:
        """Ingest one ingest.v1 envelope. Raises BadInput if it is refused for good, IntakeRefused if only for now."""
        ...

    async def ingest_batch(self, envelopes: Sequence[Mapping[str, Any]]) -> list[Receipt | PostroomError]:
        """Ingest up to 100 envelopes: for each, its receipt or its error. Raises IntakeRefused if none was accepted
        and all may be retried later.
        """
        ...

    async def changes(self, reports: Sequence[Mapping[str, Any]]) -> None:
        """Report up to 100 changes: message_id, labels_added, labels_removed, deleted."""
        ...

    async def heartbeat(self, report: Mapping[str, Any]) -> None:
        """Send one connector.heartbeat.v1 report."""
        ...


class ContactsPage(NamedTuple):
    """Normalised addresses. `next_cursor` is None on the last page."""

    generated_at: datetime
    addresses: tuple[str, ...]
    next_cursor: str | None


class Filters(NamedTuple):
    """The ingestion rules in effect; the version changes whenever they do."""

    generated_at: datetime
    version: str
    rules: tuple[IngestionRule, ...]


class ConnectorRequest(NamedTuple):
    """A request to this connector, held under a lease."""

    id: UUID
    lease_token: UUID
    kind: str
    arguments: Mapping[str, Any]
    expires_in: timedelta


class GrantedToken(NamedTuple):
    """An access token for the mailbox, its remaining lifetime, the account's address, and the granted scopes."""

    value: str
    expires_in: timedelta
    account: str = ""
    scopes: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return f"GrantedToken(expires_in={self.expires_in})"


class ContactSource(Protocol):
    async def contacts(self, cursor: str) -> ContactsPage:
        """A page of the contacts of this connector's mailbox; the first page for an empty cursor."""
        ...


class FilterSource(Protocol):
    async def filters(self) -> Filters:
        """The ingestion rules. Raises BadInput if this version does not understand one."""
        ...


class RequestSource(Protocol):
    async def requests(self, wait: timedelta) -> list[ConnectorRequest]:
        """Requests to this connector; if there are none, wait for this long, at most 20 s."""
        ...

    async def reply(self, request: ConnectorRequest, result: Mapping[str, Any]) -> None:
        """Answer the request. Raises LeaseLost if the lease is no longer held."""
        ...

    async def fail(self, request: ConnectorRequest, error: str) -> None:
        """Report why the request failed. Raises LeaseLost if the lease is no longer held."""
        ...


@dataclass(frozen=True, slots=True)
class BackfillAssignment:
    """A backfill job that this connector works on, under a lease. `wait_s` is how long to wait before the first
    message, so that the rate holds across restarts.
    """

    job_id: UUID
    lease_token: str
    batch_seq: int
    wait_s: float
    categories: tuple[str, ...]
    window: Window
    cursor: BackfillCursor
    rate_limit_per_hour: int
    message_cost_micros: int
    in_background: bool


class FailedMessage(NamedTuple):
    """A message that could not be read, or that was refused for good."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class BackfillProgress:
    """The work done since the last report. The same `batch_seq` twice counts once."""

    job_id: UUID
    lease_token: str
    batch_seq: int
    cursor: BackfillCursor
    processed: int = 0
    skipped: int = 0
    spent_micros: int = 0
    failed: tuple[FailedMessage, ...] = ()
    categories: Mapping[str, int] = field(default_factory=dict[str, int])
    status: Literal["active", "completed", "error"] = "active"
    error: str | None = None


class BackfillStatus(NamedTuple):
    """The switchboard's answer to a progress. Any status but `active` means: stop at once, and report nothing more."""

    status: str
    live_backlog: bool = False
    left_today_micros: int | None = None
    wait_s: float = 0.0


class BackfillSource(Protocol):
    async def poll_backfill(
        self, connector_type: str, endpoint_identity: str, lease_token: str | None = None
    ) -> BackfillAssignment | None:
        """A job to work on, if there is one that nobody else works on. `lease_token` is the lease that this connector
        had before it was started again: that job is its own.
        """
        ...

    async def report_backfill(self, progress: BackfillProgress) -> BackfillStatus:
        """Report progress, and renew the lease. Raises LeaseLost if it is no longer held."""
        ...
