"""Messages that were refused for good: recorded in a file, so that they block no others and stay visible. A line has
the id, the reason and the time, and no content of the message.
"""

import os
import re
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import orjson

from postroom.core.errors import BadInput, MailboxError
from postroom.sources.state_file import replace_file
from postroom.system.private_files import open_private, private_folder

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
        """Record a refusal. A message refused before is listed once, with the latest reason, and is never missing in
        between.
        """
        again = id in self._ids
        self._ids.add(id)
        if self._folder is None:
            return
        path, old = self._folder / FILE, self._folder / OLD_FILE
        private_folder(path.parent)
        if path.exists() and path.stat().st_size > LARGEST_FILE:
            path.replace(old)
            self._ids = {id, *(each.id for each in refused_in(self._folder))}
        line = RefusedMessage(id, reason_of(error), self._clock().isoformat())
        if again:
            replace_file(path, _as_lines(*(each for each in _lines(path) if each.id != id), line))
            _strike_off(old, {id})
        else:
            with open(open_private(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "ab") as file:
                file.write(_as_lines(line))

    def forget(self, ids: Iterable[str]) -> bool:
        """Remove messages that have a better outcome now. Return whether there were any."""
        ended = self._ids.intersection(ids)
        if not ended:
            return False
        self._ids -= ended
        for path in () if self._folder is None else (self._folder / OLD_FILE, self._folder / FILE):
            _strike_off(path, ended)
        return True


def refused_in(folder: Path) -> list[RefusedMessage]:
    """The refused messages in a connector's folder, oldest first, including the previous file.

    One that is listed twice, because of a crash between the two files, counts with its last reason.
    """
    listed = [*_lines(folder / OLD_FILE), *_lines(folder / FILE)]
    last = {each.id: place for place, each in enumerate(listed)}
    return [each for place, each in enumerate(listed) if last[each.id] == place]


def reason_of(error: Exception) -> str:
    """The type of the error and the field it names: the rest of its text may quote the message."""
    kind = type(error).__name__
    match error:
        case BadInput():
            return f"{kind}: {_NO_NAME.sub('?', error.field)[:LONGEST_REASON]}"
        case MailboxError() if error.code is not None:
            return f"{kind}: {error.code}"
        case _:
            return kind


def _as_lines(*lines: RefusedMessage) -> bytes:
    return b"".join(orjson.dumps(each._asdict()) + b"\n" for each in lines)


def _strike_off(path: Path, ids: AbstractSet[str]) -> None:
    lines = _lines(path)
    left = [each for each in lines if each.id not in ids]
    if len(left) < len(lines):
        replace_file(path, _as_lines(*left))


def _lines(path: Path) -> list[RefusedMessage]:
    """Read the lines. One that a crash has cut off is left out."""
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
