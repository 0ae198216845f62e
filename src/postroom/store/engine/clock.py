"""The one clock that machines share.

Leases are times in the future, so they must be checked with the clock that wrote them. On SQLite that is the machine's
own. On PostgreSQL every machine has its own clock, so all use the server's: its time is fetched now and then, and
advanced in between by a local monotonic clock. A wrong local wall clock changes nothing.
"""

from datetime import UTC, datetime
from typing import Protocol, runtime_checkable

from postroom.system.boot_clock import BootClock, since_boot
from postroom.system.wall_clock import Clock, wall_clock

ASK_EVERY_S = 10.0


class ServerClock:
    """The server's time, as far as known: the local wall clock until it was fetched for the first time."""

    def __init__(self, boot: BootClock = since_boot) -> None:
        self._boot = boot
        self._asked_at = float("-inf")
        self._ahead_of_boot: float | None = None

    def __call__(self) -> datetime:
        if self._ahead_of_boot is None:
            return wall_clock()
        return datetime.fromtimestamp(self._boot() + self._ahead_of_boot, UTC)

    @property
    def is_due(self) -> bool:
        """Return whether to ask the server again: its clock may have been set, and clocks drift."""
        return self._boot() - self._asked_at >= ASK_EVERY_S

    def asking(self) -> float:
        """Note the time of a question, to be passed back with the answer. Others need not ask meanwhile."""
        self._asked_at = self._boot()
        return self._asked_at

    def learn(self, server_time: datetime, asked_at: float) -> None:
        """Set the clock, assuming that the server read its own halfway between question and answer."""
        self._ahead_of_boot = server_time.timestamp() - (asked_at + self._boot()) / 2


@runtime_checkable
class HasServerClock(Protocol):
    """A database whose server has a clock that all its clients share."""

    @property
    def clock(self) -> Clock: ...


def clock_of(database: object) -> Clock:
    """The clock used for leases in this database."""
    return database.clock if isinstance(database, HasServerClock) else wall_clock
