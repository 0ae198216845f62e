"""A disk beneath SQLite that stops the process in the middle of a commit or of a checkpoint.

`Spot("wal", "write", 7)` is the seventh write to the write-ahead log: frames of one transaction lie there in part. The
database file is written by checkpoints only, and any process that has the database open may be the one that takes the
next. So a process that is to stop in one takes checkpoints itself, again and again, instead of waiting for its turn.
"""

import importlib
import signal
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

from postroom.store.engine.opening import FILE
from postroom.store.engine.sqlite_connection import connect
from support.processes import announce

BASE = "unix"
CHECKPOINT_EVERY_S = 0.005
# The stubs of the project hold only what the product uses, and file systems of one's own are not among that.
_apsw: Any = importlib.import_module("apsw")


class Spot(NamedTuple):
    """The n-th time that this is done to this file: `wal` or `database`, `write` or `sync`."""

    file: str
    act: str
    number: int

    def __str__(self) -> str:
        return f"{self.file} {self.act} {self.number}"

    @classmethod
    def parse(cls, text: str) -> "Spot":
        file, act, number = text.split()
        return cls(file, act, int(number))


class HaltingDisk:
    """Counts what is done, once it is armed."""

    def __init__(self, spot: Spot) -> None:
        self._armed = False
        self.files: Any = None  # kept alive as long as the disk is
        self._spot = spot
        self._left = spot.number

    def arm(self, folder: Path) -> None:
        """From now on it counts."""
        self._armed = True
        if self._spot.file == "database":
            threading.Thread(target=_checkpoint_forever, args=(folder / FILE,), daemon=True).start()

    def does(self, file: str, act: str) -> None:
        if self._armed and (file, act) == self._spot[:2]:
            self._left -= 1
            if self._left == 0:
                announce("halt", self._spot)
                signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


def _checkpoint_forever(path: Path) -> None:
    """Passive checkpoints: they take what there is and wait for nobody."""
    connection = connect(path)
    while True:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        time.sleep(CHECKPOINT_EVERY_S)


def install(spot: Spot) -> HaltingDisk:
    """Makes the halting disk the one that every connection opened from now on uses."""
    disk = HaltingDisk(spot)

    class HaltingFile(_apsw.VFSFile):
        def __init__(self, name: Any, flags: list[int]) -> None:
            super().__init__(BASE, name, flags)
            path = name.filename() if hasattr(name, "filename") else str(name)
            self._kind = "wal" if Path(path).name.endswith("-wal") else "database"

        def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's own name
            disk.does(self._kind, "write")
            super().xWrite(data, offset)

        def xSync(self, flags: int) -> None:  # noqa: N802
            disk.does(self._kind, "sync")
            super().xSync(flags)

    class HaltingFiles(_apsw.VFS):
        def __init__(self) -> None:
            super().__init__("halting", BASE, makedefault=True)

        def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802
            return HaltingFile(name, flags)

    disk.files = HaltingFiles()
    return disk
