"""The disk reserve: intake stops long before the disk is full, so that queued work can still be done.

SQLite's write-ahead log grows while a process holds an old snapshot of the database. That alone stops nothing; but the
log is to be copied into the database one day, so a long one needs its own length of free space.
"""

import shutil
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from postroom.core.errors import IntakeRefused
from postroom.store.engine.write_ahead_log import LONG_BYTES, log_bytes

CHECK_EVERY_S = 1.0
RETRY_AFTER = timedelta(seconds=60)
LOG_RETRY_AFTER = timedelta(seconds=5)
MIB = 1024 * 1024


def free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


class DiskReserve:
    """Refuses intake when less than the reserve is free on the disk of the data folder, or too little for a long log.

    `database` is the SQLite file; None with PostgreSQL.
    """

    def __init__(
        self,
        folder: Path,
        reserve_mib: int,
        free: Callable[[Path], int] = free_bytes,
        check_every_s: float = CHECK_EVERY_S,
        *,
        database: Path | None = None,
    ) -> None:
        self._folder = folder
        self._database = database
        self._reserve = reserve_mib * MIB
        self._free = free
        self._look_every_s = check_every_s
        self._looked_at = float("-inf")
        self._found = 0

    def check(self) -> None:
        self.check_space()
        self.check_log()

    def check_space(self) -> None:
        self._look()
        if self._found < self._reserve:
            raise IntakeRefused(
                f"only {self._found // MIB} MiB are free on the disk of {self._folder}, less than the reserve of "
                f"{self._reserve // MIB} MiB; free some space, or lower disk_reserve_mib",
                RETRY_AFTER,
            )

    def _look(self) -> None:
        if time.monotonic() - self._looked_at >= self._look_every_s:
            try:
                self._found, self._looked_at = self._free(self._folder), time.monotonic()
            except OSError as error:
                raise IntakeRefused(
                    f"the data folder {self._folder} cannot be read ({error.strerror or error}); stop Postroom, put "
                    "the folder back, and start it again",
                    RETRY_AFTER,
                ) from error

    @property
    def log_bytes(self) -> int | None:
        """The size of the write-ahead log; None with PostgreSQL."""
        return None if self._database is None else log_bytes(self._database)

    def check_log(self) -> None:
        """Refuse if the log is long and there is no room to copy it into the database."""
        size = self.log_bytes
        if size is None or size < LONG_BYTES:
            return
        self._look()
        if self._found < self._reserve + size:
            raise IntakeRefused(
                f"the write-ahead log of {self._database} has grown to {size // MIB} MiB, because some process holds "
                f"an old snapshot of the database, and only {self._found // MIB} MiB are free; find the process with "
                "`postroom doctor` and end it, or free some space; intake then continues",
                LOG_RETRY_AFTER,
            )
