"""How far a connector has got: a small file, replaced as a whole, so that a crash leaves the old one or the new one."""

import contextlib
import os
from pathlib import Path

import orjson


class Checkpoint:
    """One number in one file. Written only after the switchboard has accepted everything before it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> int | None:
        """None when there is none yet, or when the file makes no sense: then the connector looks at everything."""
        try:
            content = orjson.loads(self._path.read_bytes())
            return int(content["history_id"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write(self, history_id: int) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        partial = self._path.with_suffix(".partial")
        with partial.open("wb") as file:
            file.write(orjson.dumps({"history_id": history_id}))
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self._path)
        with contextlib.suppress(OSError):  # not every file system can sync a folder
            folder = os.open(self._path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
