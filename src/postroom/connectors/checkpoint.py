"""How far a connector has got: a small file, replaced as a whole, so that a crash leaves the old one or the new one."""

from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from postroom.connectors.state_file import read_object, replace_file


class Checkpoint:
    """One place in one file. Written only after the switchboard has accepted everything before it.

    While a connector looks back at what there is already, the file also holds the place from which it goes on
    afterwards: one that is killed meanwhile begins again there, and misses nothing that came in between.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> int | None:
        """None when there is none yet, or when the file makes no sense: then the connector looks at everything."""
        return _number(self._content(), "history_id")

    def reached_at(self) -> datetime | None:
        """Up to when everything is with the switchboard, as far as that is known."""
        try:
            moment = datetime.fromisoformat(str(self._content().get("reached_at")))
        except ValueError:
            return None
        return moment if moment.tzinfo is not None else None

    def looking_back_from(self) -> int | None:
        """Where to go on after a look back that has begun and not ended."""
        return _number(self._content(), "looking_back_from")

    def write(self, history_id: int, reached_at: datetime | None = None) -> None:
        self._replace({"history_id": history_id, "reached_at": None if reached_at is None else reached_at.isoformat()})

    def begin_to_look_back(self, history_id: int) -> None:
        """The place before stays known: whatever happens, this was not reached yet."""
        self._replace({**self._content(), "looking_back_from": history_id})

    def _content(self) -> dict[str, Any]:
        return read_object(self._path)

    def _replace(self, content: dict[str, Any]) -> None:
        replace_file(self._path, orjson.dumps(content))


def _number(content: dict[str, Any], name: str) -> int | None:
    value = content.get(name)
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    try:
        return int(value)
    except ValueError:
        return None
