"""A connector's checkpoint: a small file, replaced as a whole, so that a crash leaves the old one or the new one."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, cast

import orjson

from postroom.sources.state_file import read_moment, read_object, replace_file


class ListPosition(NamedTuple):
    """A place in a list of messages: everything before it has been ingested, or waits to be."""

    id: str
    date: datetime


@dataclass(frozen=True)
class LookBackState:
    """An unfinished look-back: its window, its progress, and where to follow the history afterwards.

    `history_id` is a place in the history, and `began_at` the time at which it was the newest. `since` is the start of
    the window, which does not move, however long the look-back takes and however often it is interrupted. `passed` is
    how far each list was read, by the list's name.
    """

    history_id: int
    began_at: datetime
    since: datetime
    passed: dict[str, ListPosition] = field(default_factory=dict[str, ListPosition])


class Checkpoint:
    """A place in the history, in one file. Written only after everything before it was accepted by the switchboard, or
    is on the reading list, whose name is written too.

    During a look-back, the file also contains its state, so that a connector that is killed continues there, and misses
    nothing that arrived in between.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> int | None:
        """The history id; None without a valid file: then the connector starts with a look-back."""
        return _number(self._content().get("history_id"))

    def reached_at(self) -> datetime | None:
        """The time up to which everything has been found, as far as known."""
        return read_moment(self._content().get("reached_at"))

    def look_back(self) -> LookBackState | None:
        """The unfinished look-back, if there is one."""
        return _look_back(self._content().get("look_back"))

    def reading_list(self) -> str | None:
        """The name of the list on which messages before this place may be; None if there was none."""
        name = self._content().get("reading_list")
        return name if isinstance(name, str) else None

    def write(self, history_id: int, reached_at: datetime | None = None, reading_list: str | None = None) -> None:
        """Record that everything up to this place has been ingested, or is on the list. Ends a look-back."""
        self._replace(
            {
                "history_id": history_id,
                "reached_at": None if reached_at is None else reached_at.isoformat(),
                "reading_list": reading_list,
            }
        )

    def begin_look_back(
        self, history_id: int, began_at: datetime, since: datetime, reading_list: str | None = None
    ) -> LookBackState:
        """Start a look-back. The previous place is kept, since the new one has not been reached yet."""
        return self._keep(LookBackState(history_id, began_at, since), reading_list=reading_list)

    def follow_meanwhile(self, history_id: int, at: datetime) -> None:
        """Record that what arrived during the look-back has been found up to this place, the newest at `at`."""
        if (state := self.look_back()) is not None:
            self._keep(replace(state, history_id=history_id, began_at=at))

    def pass_in_list(self, name: str, passed: ListPosition) -> None:
        """Record that the look-back has read this list down to this message."""
        if (state := self.look_back()) is not None:
            self._keep(replace(state, passed={**state.passed, name: passed}))

    def _keep(self, state: LookBackState, **others: str | None) -> LookBackState:
        self._replace({**self._content(), **others, "look_back": _as_data(state)})
        return state

    def _content(self) -> dict[str, Any]:
        return read_object(self._path)

    def _replace(self, content: dict[str, Any]) -> None:
        replace_file(self._path, orjson.dumps(content))


def _as_data(state: LookBackState) -> dict[str, Any]:
    return {
        "history_id": state.history_id,
        "began_at": state.began_at.isoformat(),
        "since": state.since.isoformat(),
        "passed": {name: [passed.id, passed.date.isoformat()] for name, passed in state.passed.items()},
    }


def _look_back(given: object) -> LookBackState | None:
    """Parse the state of a look-back; None if malformed: then it starts over, and ingests nothing twice."""
    if not isinstance(given, dict):
        return None
    content = cast("dict[str, Any]", given)
    history_id, began_at = _number(content.get("history_id")), read_moment(content.get("began_at"))
    since, lists = read_moment(content.get("since")), content.get("passed")
    if history_id is None or began_at is None or since is None or not isinstance(lists, dict):
        return None
    passed = {name: found for name, each in cast("dict[str, Any]", lists).items() if (found := _read_position(each))}
    return LookBackState(history_id, began_at, since, passed)


def _read_position(given: object) -> ListPosition | None:
    match given:
        case [str(id), str(text)] if (date := read_moment(text)) is not None:
            return ListPosition(id, date)
        case _:
            return None


def _number(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    try:
        return int(value)
    except ValueError:
        return None
