"""Messages that could not be handed in for good: remembered in a file, so that they hold up no others and are not lost
from sight. A line tells the id, the reason and the time, and nothing out of the message.
"""

import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import orjson

from postroom.core.errors import BadInput

LONGEST_REASON = 120
LARGEST_FILE = 4 * 1024 * 1024
_NO_NAME = re.compile(r"[^A-Za-z0-9_.\[\]-]")


class RefusedMail:
    """The list, in `refused.jsonl` of the folder; without a folder only the number is kept."""

    def __init__(self, folder: Path | None, clock: Callable[[], datetime]) -> None:
        self._path = None if folder is None else folder / "refused.jsonl"
        self._clock = clock
        self.count = 0 if self._path is None else _lines_in(self._path)

    def remember(self, id: str, error: Exception) -> None:
        self.count += 1
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if self._path.exists() and self._path.stat().st_size > LARGEST_FILE:
            self._path.replace(self._path.with_suffix(".old.jsonl"))
        line = {"id": id, "reason": reason_of(error), "at": self._clock().isoformat()}
        with self._path.open("ab") as file:
            file.write(orjson.dumps(line) + b"\n")


def reason_of(error: Exception) -> str:
    """The kind of error and the field it names: the rest of its words may quote the message."""
    kind = type(error).__name__
    return f"{kind}: {_NO_NAME.sub('?', error.field)[:LONGEST_REASON]}" if isinstance(error, BadInput) else kind


def _lines_in(path: Path) -> int:
    try:
        with path.open("rb") as file:
            return sum(1 for _ in file)
    except OSError:
        return 0
