"""The parameters that all searches of stored mail have."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID


class SearchFilter(NamedTuple):
    """Which messages are looked at, in the order in which the statements declare it."""

    accounts: list[UUID]
    labels: str
    other_labels: str
    has_attachment: bool | None
    after: datetime
    before: datetime
    cursor_at: datetime
    cursor_id: UUID
    most: int
