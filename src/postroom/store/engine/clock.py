"""The wall clock as an argument, so that tests can move it by hand, and the one clock that machines share.

Leases are times in the future: whoever judges one must read the clock that wrote it. On SQLite that is the machine's
own. On PostgreSQL every machine has a clock of its own, so all of them go by the server's: its time is asked for now
and then, and carried on in between by a local clock that never jumps. A local wall clock that is wrong changes nothing.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol, runtime_checkable

from postroom.system.boot_clock import BootClock, since_boot

Clock = Callable[[], datetime]

ASK_EVERY_S = 10.0


def wall_clock() -> datetime:
    return datetime.now(UTC)


class ServerClock:
    """The server's time, as far as we know it: the local wall clock until it was asked for the first time."""

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
        """Whether the server should be asked again: its clock may have been set, and no two run at the same pace."""
        return self._boot() - self._asked_at >= ASK_EVERY_S

    def asking(self) -> float:
        """The moment of a question, to be given back with its answer. Others need not ask meanwhile."""
        self._asked_at = self._boot()
        return self._asked_at

    def learn(self, server_time: datetime, asked_at: float) -> None:
        """Takes the server to have read its clock halfway between question and answer."""
        self._ahead_of_boot = server_time.timestamp() - (asked_at + self._boot()) / 2


@runtime_checkable
class KeepsTime(Protocol):
    """A database whose server has a clock that all its clients share."""

    @property
    def clock(self) -> Clock: ...


def clock_of(database: object) -> Clock:
    """The clock that leases in this database are judged by."""
    return database.clock if isinstance(database, KeepsTime) else wall_clock
