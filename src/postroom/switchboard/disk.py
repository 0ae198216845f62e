"""Whether there is room for more: intake stops long before the disk is full, so that work can drain."""

import shutil
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from postroom.core.errors import IntakeRefused

LOOK_EVERY_S = 1.0
COME_BACK = timedelta(seconds=60)


def free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


class DiskReserve:
    """Refuses when less than the reserve is free on the disk of the data folder."""

    def __init__(
        self,
        folder: Path,
        reserve_mib: int,
        free: Callable[[Path], int] = free_bytes,
        look_every_s: float = LOOK_EVERY_S,
    ) -> None:
        self._folder = folder
        self._reserve = reserve_mib * 1024 * 1024
        self._free = free
        self._look_every_s = look_every_s
        self._looked_at = float("-inf")
        self._found = 0

    def check(self) -> None:
        if time.monotonic() - self._looked_at >= self._look_every_s:
            self._found, self._looked_at = self._free(self._folder), time.monotonic()
        if self._found < self._reserve:
            mib = 1024 * 1024
            raise IntakeRefused(
                f"only {self._found // mib} MiB are free on the disk of {self._folder}, less than the reserve of "
                f"{self._reserve // mib} MiB; free some space, or lower disk_reserve_mib",
                COME_BACK,
            )
