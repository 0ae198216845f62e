"""How far a connector has got: a small file, replaced as a whole, so that a crash leaves the old one or the new one."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, cast

import orjson

from postroom.connectors.state_file import read_object, replace_file


class Passed(NamedTuple):
    """The last message of a list up to which everything is with the switchboard."""

    id: str
    date: datetime


@dataclass(frozen=True)
class LookBackState:
    """A look back that has begun and not ended: its window, where following goes on afterwards, and how far it is.

    `history_id` is a place in history, and `began_at` the time at which it was the newest. `since` is the window's
    start: it stays as it was at the beginning, however long the look back takes and however often it is interrupted.
    `passed` is how far each list was read, by the list's name.
    """

    history_id: int
    began_at: datetime
    since: datetime
    passed: dict[str, Passed] = field(default_factory=dict[str, Passed])


class Checkpoint:
    """One place in one file. Written only after the switchboard has accepted everything before it.

    While a connector looks back at what there is already, the file also holds the state of that: one that is killed
    meanwhile goes on there, and misses nothing that came in between.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> int | None:
        """None when there is none yet, or when the file makes no sense: then the connector looks at everything."""
        return _number(self._content().get("history_id"))

    def reached_at(self) -> datetime | None:
        """Up to when everything is with the switchboard, as far as that is known."""
        return _moment(self._content().get("reached_at"))

    def look_back(self) -> LookBackState | None:
        """The look back that has begun and not ended."""
        return _look_back(self._content().get("look_back"))

    def write(self, history_id: int, reached_at: datetime | None = None) -> None:
        """Everything up to this place is with the switchboard. A look back that was under way has ended."""
        self._replace({"history_id": history_id, "reached_at": None if reached_at is None else reached_at.isoformat()})

    def begin_look_back(self, history_id: int, began_at: datetime, since: datetime) -> LookBackState:
        """The place before stays known: whatever happens, this was not reached yet."""
        return self._keep(LookBackState(history_id, began_at, since))

    def follow_meanwhile(self, history_id: int, at: datetime) -> None:
        """What came during the look back is with the switchboard up to this place, the newest at that time."""
        if (state := self.look_back()) is not None:
            self._keep(replace(state, history_id=history_id, began_at=at))

    def pass_in_list(self, name: str, passed: Passed) -> None:
        """The look back has taken everything of this list down to this message."""
        if (state := self.look_back()) is not None:
            self._keep(replace(state, passed={**state.passed, name: passed}))

    def _keep(self, state: LookBackState) -> LookBackState:
        self._replace({**self._content(), "look_back": _as_data(state)})
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
    """None for what makes no sense: then the look back begins anew, and takes nothing twice."""
    if not isinstance(given, dict):
        return None
    content = cast("dict[str, Any]", given)
    history_id, began_at = _number(content.get("history_id")), _moment(content.get("began_at"))
    since, lists = _moment(content.get("since")), content.get("passed")
    if history_id is None or began_at is None or since is None or not isinstance(lists, dict):
        return None
    passed = {name: found for name, each in cast("dict[str, Any]", lists).items() if (found := _passed(each))}
    return LookBackState(history_id, began_at, since, passed)


def _passed(given: object) -> Passed | None:
    match given:
        case [str(id), str(text)] if (date := _moment(text)) is not None:
            return Passed(id, date)
        case _:
            return None


def _moment(given: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(given))
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


def _number(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    try:
        return int(value)
    except ValueError:
        return None
