"""How a connector reaches the switchboard, wherever that is."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol
from uuid import UUID


class Receipt(NamedTuple):
    """The switchboard has it, on disk."""

    request_id: UUID
    duplicate: bool


class SwitchboardClient(Protocol):
    """The switchboard's tools, as far as connectors use them."""

    async def ingest(self, envelope: Mapping[str, Any]) -> Receipt:
        """Hands in one ingest.v1 envelope. Raises BadInput when it is refused for good, IntakeRefused for now."""
        ...
