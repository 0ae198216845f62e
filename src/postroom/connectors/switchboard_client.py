"""How a connector reaches the switchboard, wherever that is."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from postroom.core.errors import PostroomError


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

    async def heartbeat(self, report: Mapping[str, Any]) -> None:
        """Hands in one connector.heartbeat.v1 report."""
        ...
