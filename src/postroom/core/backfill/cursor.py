"""The cursor of a backfill: how far the walk backward through the window has come.

The window is walked in spans of up to 31 days. In a span, messages are done in the order of their ids, so that a
resumed walk continues at the same place, even if messages were added or deleted meanwhile.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from postroom.core.backfill.window import Window
from postroom.core.days import DAY
from postroom.core.errors import BadInput

LONGEST_SPAN = 31 * DAY
LENGTH_OF_DAY = 10
_ID = re.compile(r"[!-~]{0,512}")
_REMEDY = 'use {"day": "2025-12-31", "since": "2025-12-01", "id": "<last message done, or empty>"}'


@dataclass(frozen=True, slots=True)
class BackfillCursor:
    """Everything after `day` is done; of the span from `since` to `day`, everything down to `id` (empty: nothing)."""

    day: date
    since: date
    id: str = ""

    @classmethod
    def first(cls, window: Window) -> "BackfillCursor":
        """The cursor of a walk that has not begun."""
        return cls._span(window.date_to, window)

    @classmethod
    def end(cls, window: Window) -> "BackfillCursor":
        """The cursor of a walk that is done."""
        return cls(window.date_from - DAY, window.date_from - DAY)

    def next_span(self, window: Window) -> "BackfillCursor":
        """The cursor when the span is done: that of the span before it, or the end of the walk."""
        return self._span(self.since - DAY, window)

    def done(self, id: str) -> "BackfillCursor":
        """The cursor when this message of the span is done."""
        return BackfillCursor(self.day, self.since, id)

    def at_end(self, window: Window) -> bool:
        return self.day < window.date_from

    def span(self, window: Window) -> Window:
        return Window(self.since, self.day, window.zone)

    def left(self, ids: Iterable[str]) -> list[str]:
        """The ids of the span that are not done yet, in the order in which they are done."""
        return [id for id in sorted(set(ids), key=_place, reverse=True) if not self.id or _place(id) < _place(self.id)]

    def is_behind(self, other: "BackfillCursor") -> bool:
        """Whether less is done here than at `other`."""
        if self.day != other.day or self.since != other.since:
            return self.day >= other.since
        return _place(self.id) > _place(other.id) if other.id and self.id else bool(other.id)

    def as_json(self) -> dict[str, str]:
        return {"day": self.day.isoformat(), "since": self.since.isoformat(), "id": self.id}

    @classmethod
    def stored(cls, kept: Mapping[str, Any] | None) -> "BackfillCursor | None":
        """A cursor as `as_json` made it."""
        if kept is None:
            return None
        return cls(date.fromisoformat(kept["day"]), date.fromisoformat(kept["since"]), kept["id"])

    @classmethod
    def _span(cls, day: date, window: Window) -> "BackfillCursor":
        if day < window.date_from:
            return cls.end(window)
        return cls(day, max(window.date_from, day - LONGEST_SPAN + DAY))


def parse_cursor(given: Mapping[str, Any], window: Window) -> BackfillCursor:
    """A cursor from outside. Raises BadInput if it is malformed or outside the window."""
    if set(given) - {"day", "since", "id"} or not {"day", "since"} <= set(given):
        raise BadInput("cursor", f"has the fields {', '.join(sorted(map(str, given)))[:80] or 'none'}", _REMEDY)
    day, since, id = _day("day", given["day"]), _day("since", given["since"]), given.get("id", "")
    if not isinstance(id, str) or not _ID.fullmatch(id):
        raise BadInput("cursor.id", "is not the id of a message", _REMEDY)
    cursor = BackfillCursor(day, since, id)
    if cursor == BackfillCursor.end(window):
        return cursor
    if not window.date_from <= since <= day <= window.date_to:
        problem = f"goes from {since} to {day}, outside of {window.date_from} to {window.date_to}"
        raise BadInput("cursor", problem, "stay inside the window of the job")
    return cursor


def _day(name: str, given: object) -> date:
    try:
        return date.fromisoformat(given if isinstance(given, str) and len(given) == LENGTH_OF_DAY else "")
    except ValueError:
        raise BadInput(f"cursor.{name}", f"{str(given)[:40]!r} is not a day", _REMEDY) from None


def _place(id: str) -> tuple[int, str]:
    return len(id), id
