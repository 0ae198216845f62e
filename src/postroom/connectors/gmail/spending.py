"""A quota that survives the process: a connector that is killed and restarted does not spend the minute twice.

The units spent are written to a small file each time a call is admitted, before it is made. A process that starts
within a minute counts all of them as spent just now.
"""

import contextlib
import os
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from postroom.gmail.quota import MINUTE, Quota, Ticket
from postroom.gmail.terms import NEW_PROJECT, Terms, Use
from postroom.system.private_files import open_private, private_folder

# A call in flight when the process died may have arrived a little later.
ON_ITS_WAY = 10.0
_WIDTH = 40


class RememberedQuota(Quota):
    """The quota of one user, and its file. `wall` is a clock that continues between two processes."""

    def __init__(
        self, path: Path, terms: Terms = NEW_PROJECT, *, wall: Callable[[], float] = time.time, **options: Any
    ) -> None:
        super().__init__(terms, **options)
        self._wall = wall
        self._recalled = _read(path, wall())
        private_folder(path.parent)
        self._file = open_private(path, os.O_WRONLY | os.O_CREAT)

    @asynccontextmanager
    async def admitted(self, call: str, units: int, use: Use = "live") -> AsyncGenerator[Ticket]:
        if self._recalled:
            earlier, self._recalled = min(self._recalled, self.terms.per_minute), 0
            async with super().admitted("earlier", earlier, "live"):
                pass
        async with super().admitted(call, units, use) as ticket:
            self._note()
            yield ticket

    def close(self) -> None:
        os.close(self._file)

    def _note(self) -> None:
        """Write the note, always of the same length and in one write: a kill leaves the old or the new one."""
        note = f"{self._wall():.3f} {self.spent()}".ljust(_WIDTH - 1) + "\n"
        with contextlib.suppress(OSError):
            os.pwrite(self._file, note.encode(), 0)


class Spending(NamedTuple):
    """The units that were spent in the minute before a moment."""

    at: datetime
    units: int


def noted_spending(path: Path) -> Spending | None:
    """Read the last note; None if it is missing or malformed."""
    try:
        noted_at, units = path.read_text().split()
        return Spending(datetime.fromtimestamp(float(noted_at), UTC), max(0, int(units)))
    except (OSError, ValueError, OverflowError):
        return None


def _read(path: Path, now: float) -> int:
    """The units that may still count; zero if the note is old, missing, or malformed."""
    noted = noted_spending(path)
    if noted is None or now - noted.at.timestamp() > MINUTE + ON_ITS_WAY:
        return 0
    return noted.units
