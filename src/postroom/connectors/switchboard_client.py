"""How a connector reaches the switchboard, wherever that is."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from postroom.core.errors import PostroomError
from postroom.core.mail.ingestion import IngestionRule


class Receipt(NamedTuple):
    """The switchboard has it, on disk."""

    request_id: UUID
    duplicate: bool


class SwitchboardClient(Protocol):
    """The switchboard's tools, as far as connectors use them."""

    async def ingest(self, envelope: Mapping[str, Any]) -> Receipt:
        """Hands in one ingest.v1 envelope. Raises BadInput when it is refused for good, IntakeRefused for now."""
        ...

    async def ingest_batch(self, envelopes: Sequence[Mapping[str, Any]]) -> list[Receipt | PostroomError]:
        """Hands in up to 100 at once: for each its receipt, or why it was refused. Raises IntakeRefused when nothing
        was accepted and all may be handed in again later.
        """
        ...

    async def changes(self, reports: Sequence[Mapping[str, Any]]) -> None:
        """Tells of up to 100 changes: message_id, labels_added, labels_removed, deleted."""
        ...

    async def heartbeat(self, report: Mapping[str, Any]) -> None:
        """Hands in one connector.heartbeat.v1 report."""
        ...


class ContactsPage(NamedTuple):
    """Addresses in the form in which they are compared. `next_cursor` is None on the last page."""

    generated_at: datetime
    addresses: tuple[str, ...]
    next_cursor: str | None


class Filters(NamedTuple):
    """The ingestion rules that count; the version changes whenever they do."""

    generated_at: datetime
    version: str
    rules: tuple[IngestionRule, ...]


class AskedRequest(NamedTuple):
    """What is asked of this connector, held under a lease."""

    id: UUID
    lease_token: UUID
    kind: str
    arguments: Mapping[str, Any]
    expires_in: timedelta


class GrantedToken(NamedTuple):
    """An access token for the mailbox, how long it lives from now, whose it is, and what was granted with it."""

    value: str
    expires_in: timedelta
    account: str = ""
    scopes: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return f"GrantedToken(expires_in={self.expires_in})"


class TokenSource(Protocol):
    async def access_token(self, refused: str | None = None) -> GrantedToken:
        """A token for this connector's mailbox. Raises AccountUnusable while only a person can help."""
        ...


class ContactSource(Protocol):
    async def contacts(self, cursor: str) -> ContactsPage:
        """A page of the contacts of this connector's mailbox; the first one for an empty cursor."""
        ...


class FilterSource(Protocol):
    async def filters(self) -> Filters:
        """The ingestion rules. Raises BadInput for one that this version does not understand."""
        ...


class RequestSource(Protocol):
    async def requests(self, wait: timedelta) -> list[AskedRequest]:
        """What is asked of this connector; when there is nothing, waits so long for it, at most 20 s."""
        ...

    async def reply(self, request: AskedRequest, result: Mapping[str, Any]) -> None:
        """Answers it. Raises LeaseLost when it is not held any more."""
        ...

    async def fail(self, request: AskedRequest, error: str) -> None:
        """Says why nothing came of it. Raises LeaseLost when it is not held any more."""
        ...
