"""A file that reserves disk space, to be deleted when the disk is full.

Intake is refused long before (see `disk_reserve_mib`), but something else may fill the disk. With the ballast gone, the
work that is already here can still be finished and recorded.
"""

import os
from pathlib import Path

from postroom.system.private_files import open_private

SIZE = 16 * 1024 * 1024
_CHUNK = b"\0" * 1024 * 1024


class Ballast:
    """The ballast file beside the database."""

    def __init__(self, path: Path, size: int = SIZE) -> None:
        self.path = path
        self.size = size

    def take(self) -> bool:
        """Write the file if it is not there in full. False if there is no room for it."""
        if self.path.exists() and self.path.stat().st_size == self.size:
            return True
        try:
            with os.fdopen(open_private(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
                for start in range(0, self.size, len(_CHUNK)):
                    file.write(_CHUNK[: self.size - start])
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            self.path.unlink(missing_ok=True)
            return False
        return True

    def give_up(self) -> bool:
        """Delete the file. True if that freed space."""
        try:
            freed = self.path.exists()
            self.path.unlink(missing_ok=True)
        except OSError:
            return False
        return freed
