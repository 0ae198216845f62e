"""Where a page of a list ends and the next begins: by time, and among those of the same moment by id."""

from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from postroom.core.errors import BadInput
from postroom.store.engine.codecs import time_text


class Cursor(NamedTuple):
    """The last of a page; what comes before it in time is the next one."""

    at: datetime
    id: UUID

    def __str__(self) -> str:
        return f"{time_text(self.at)}/{self.id}"


def read_cursor(text: str) -> Cursor:
    """Raises BadInput for what is none."""
    moment, _, id = text.partition("/")
    try:
        at = datetime.fromisoformat(moment)
        return Cursor(at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC), UUID(id))
    except (ValueError, OverflowError):
        raise BadInput("before", "is no place in this list", "give next_before of the page before it") from None
