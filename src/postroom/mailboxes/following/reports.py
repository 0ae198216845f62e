"""The reports of a connector to the switchboard besides mail and changes, if the switchboard supports it."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable


@runtime_checkable
class TakesCorrespondents(Protocol):
    async def correspondents(self, addresses: Sequence[str]) -> object:
        """Report up to a hundred people to whom the user has written."""
        ...


@runtime_checkable
class TakesReports(Protocol):
    async def report(self, raw: bytes) -> object:
        """Pass on a delivery report or a complaint about mail that was sent. Raises BadInput if it is none."""
        ...
