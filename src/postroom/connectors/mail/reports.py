"""What a connector tells the switchboard beside mail and changes, where the switchboard takes it."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable


@runtime_checkable
class TakesCorrespondents(Protocol):
    async def correspondents(self, addresses: Sequence[str]) -> object:
        """People to whom the user has written, up to a hundred."""
        ...
