"""The ids of the messages that were ingested last, in memory and in a file beside the checkpoint.

They save reading a message again after a crash, or when Gmail has forgotten our position in its history. Nothing
depends on them, since the switchboard recognises duplicates. So the file is only appended to, without waiting for the
disk: what a crash of the machine cuts off is read once more.
"""

import os
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from postroom.system.private_files import open_private, private_folder, replace_private

# More than a week's mail of a busy mailbox, and about 3 MiB of memory.
MOST = 20_000


class IngestedIds:
    """The newest ids, up to `most`; without a path, only in memory."""

    def __init__(self, path: Path | None = None, most: int = MOST) -> None:
        self._path = path
        self._most = most
        self._ids: dict[str, None] = {}
        self._lines = 0
        if path is not None:
            self._read(path)

    def __contains__(self, id: str) -> bool:
        return id in self._ids

    def __len__(self) -> int:
        return len(self._ids)

    def newest(self, most: int) -> list[str]:
        """The ids added last, newest first."""
        return list(islice(reversed(self._ids), most))

    def add(self, ids: Iterable[str]) -> int:
        """Add ids; return how many were new."""
        new = [id for id in ids if id not in self._ids]
        if new:
            self._keep(new)
            self._lines += len(new)
            if self._path is not None:
                self._write(self._path, new)
        return len(new)

    def _write(self, path: Path, new: Iterable[str]) -> None:
        private_folder(path.parent)
        if self._lines > 2 * self._most:
            self._rewrite(path)
            return
        with open(open_private(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "a", encoding="utf-8") as file:
            file.write("".join(f"{id}\n" for id in new))

    def _keep(self, ids: Iterable[str]) -> None:
        self._ids.update(dict.fromkeys(ids))
        while len(self._ids) > self._most:
            del self._ids[next(iter(self._ids))]

    def _read(self, path: Path) -> None:
        """Read the file. Anything after the last line end was cut off by a crash."""
        try:
            whole, _, _ = path.read_text(encoding="utf-8", errors="replace").rpartition("\n")
        except OSError:
            return
        lines = whole.split("\n") if whole else []
        self._lines = len(lines)
        self._keep(lines)

    def _rewrite(self, path: Path) -> None:
        replace_private(path, "".join(f"{id}\n" for id in self._ids).encode())
        self._lines = len(self._ids)
