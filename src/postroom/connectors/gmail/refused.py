"""Messages that could not be handed in for good: remembered in a file, so that they hold up no others and are not lost
from sight. A line tells the id, the reason and the time, and nothing out of the message.
"""

import re
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import orjson

from postroom.connectors.state_file import replace_file
from postroom.core.errors import BadInput
from postroom.gmail.errors import ServerError

LONGEST_REASON = 120
LARGEST_FILE = 4 * 1024 * 1024
FILE, OLD_FILE = "refused.jsonl", "refused.old.jsonl"
_NO_NAME = re.compile(r"[^A-Za-z0-9_.\[\]-]")


class RefusedMessage(NamedTuple):
    """A line of the file."""

    id: str
    reason: str
    at: str


class RefusedMail:
    """The list, in `refused.jsonl` of the folder; without a folder only the number is kept."""

    def __init__(self, folder: Path | None, clock: Callable[[], datetime]) -> None:
        self._folder = folder
        self._clock = clock
        self._ids = set[str]() if folder is None else {each.id for each in refused_in(folder)}

    @property
    def count(self) -> int:
        return len(self._ids)

    def remember(self, id: str, error: Exception) -> None:
        """One that was refused before stands there once, with the reason of now."""
        self.forget([id])
        self._ids.add(id)
        if self._folder is None:
            return
        path = self._folder / FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > LARGEST_FILE:
            path.replace(self._folder / OLD_FILE)
            self._ids = {id, *(each.id for each in refused_in(self._folder))}
        line = RefusedMessage(id, reason_of(error), self._clock().isoformat())
        with path.open("ab") as file:
            file.write(orjson.dumps(line._asdict()) + b"\n")

    def forget(self, ids: Iterable[str]) -> bool:
        """Takes those off the list that have come to a better end. Whether there were any."""
        ended = self._ids.intersection(ids)
        if not ended:
            return False
        self._ids -= ended
        for path in () if self._folder is None else (self._folder / OLD_FILE, self._folder / FILE):
            lines = _lines(path)
            left = [each for each in lines if each.id not in ended]
            if len(left) < len(lines):
                replace_file(path, b"".join(orjson.dumps(each._asdict()) + b"\n" for each in left))
        return True


def refused_in(folder: Path) -> list[RefusedMessage]:
    """Those in the folder of a connector, the oldest first; also of the file before this one."""
    return [*_lines(folder / OLD_FILE), *_lines(folder / FILE)]


def reason_of(error: Exception) -> str:
    """The kind of error and the field it names: the rest of its words may quote the message."""
    kind = type(error).__name__
    match error:
        case BadInput():
            return f"{kind}: {_NO_NAME.sub('?', error.field)[:LONGEST_REASON]}"
        case ServerError():
            return f"{kind}: {error.status}"
        case _:
            return kind


def _lines(path: Path) -> list[RefusedMessage]:
    """A line that a crash has cut off is left out."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return []
    return [found for line in lines if (found := _line(line)) is not None]


def _line(line: bytes) -> RefusedMessage | None:
    try:
        found = orjson.loads(line)
        return RefusedMessage(str(found["id"]), str(found["reason"]), str(found["at"]))
    except (ValueError, KeyError, TypeError):
        return None
