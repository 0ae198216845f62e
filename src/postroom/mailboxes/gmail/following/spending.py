"""A quota that survives the process: a connector that is killed and restarted does not spend the minute twice.

The units spent in the last minute are written to a small file each time a call is admitted, before it is made: how many
in each five seconds. For a process that starts within a minute they come back as they would have for the old one.
"""

import contextlib
import os
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from postroom.mailboxes.gmail.quota import MINUTE, Quota, Ticket
from postroom.mailboxes.gmail.terms import NEW_PROJECT, Terms, Use
from postroom.mailboxes.providers import Spending
from postroom.system.private_files import open_private, private_folder

# A call in flight when the process died may have arrived a little later.
ON_ITS_WAY = 10.0
SLOT_S = 5.0
_WIDTH = 160


class RememberedQuota(Quota):
    """The quota of one user, and its file. `wall` is a clock that continues between two processes."""

    def __init__(
        self, path: Path, terms: Terms = NEW_PROJECT, *, wall: Callable[[], float] = time.time, **options: Any
    ) -> None:
        super().__init__(terms, **options)
        self._wall = wall
        for units, age in _read(path, wall()):
            self.recall(units, age)
        private_folder(path.parent)
        self._file = open_private(path, os.O_WRONLY | os.O_CREAT)

    @asynccontextmanager
    async def admitted(self, call: str, units: int, use: Use = "live") -> AsyncGenerator[Ticket]:
        async with super().admitted(call, units, use) as ticket:
            self._note()
            yield ticket

    def close(self) -> None:
        os.close(self._file)

    def _note(self) -> None:
        """Write the note, always of the same length and in one write: a kill leaves the old or the new one."""
        parts = ",".join(str(each) for each in self.spent_by_age(SLOT_S))
        note = f"{self._wall():.3f} {self.spent()} {parts}".ljust(_WIDTH - 1) + "\n"
        with contextlib.suppress(OSError):
            os.pwrite(self._file, note.encode(), 0)


def noted_spending(path: Path) -> Spending | None:
    """Read the last note; None if it is missing or malformed."""
    try:
        noted_at, units, *_ = path.read_text().split()
        return Spending(datetime.fromtimestamp(float(noted_at), UTC), max(0, int(units)))
    except (OSError, ValueError, OverflowError):
        return None


def _read(path: Path, now: float) -> list[tuple[int, float]]:
    """The units that may still count, and how many seconds ago they were spent at the least, the oldest first; nothing
    if the note is old, missing, or malformed.
    """
    noted = noted_spending(path)
    if noted is None:
        return []
    since = now - noted.at.timestamp() - ON_ITS_WAY
    spent = ((units, max(since + place * SLOT_S, 0.0)) for place, units in enumerate(_parts(path) or [noted.units]))
    return [(units, age) for units, age in reversed([*spent]) if units > 0 and age <= MINUTE]


def _parts(path: Path) -> list[int]:
    """The units of each five seconds, the latest first; empty if the note has none."""
    try:
        return [int(each) for each in path.read_text().split()[2].split(",")]
    except (OSError, ValueError, IndexError):
        return []
