"""Cursors: where a page of a list ends and the next begins, by time, then by id."""

from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from postroom.core.errors import BadInput
from postroom.store.engine.codecs import time_text


class Cursor(NamedTuple):
    """The last item of a page; the next page has what came before it."""

    at: datetime
    id: UUID

    def __str__(self) -> str:
        return f"{time_text(self.at)}/{self.id}"


def read_cursor(text: str) -> Cursor:
    """Parse a cursor. Raises BadInput if it is not valid."""
    moment, _, id = text.partition("/")
    try:
        at = datetime.fromisoformat(moment)
        return Cursor(at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC), UUID(id))
    except (ValueError, OverflowError):
        raise BadInput("before", "is not a valid cursor of this list", "use next_before of the previous page") from None
