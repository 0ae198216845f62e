"""Named points at which a process stops dead, so that it can be killed exactly there.

Every store verb has three: `before` it is asked for, `inside` its transaction (all statements done, nothing
committed), and `after` its commit, when nobody in the process knows of it yet. `inside claim` is such a name.

The process stops itself with SIGSTOP and announces it: a test may kill it there, or let it sleep past its lease and
wake it again.
"""

import asyncio
import signal
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from postroom.store.engine.database import Database, Dialect, Script, Subscription, Transaction
from support.processes import announce

T = TypeVar("T")

MOMENTS = ("before", "inside", "after")
ENDS = ("finish", "deliver", "fail", "cancel_claimed")


class Point(NamedTuple):
    """One place in the life of a process."""

    moment: str
    verb: str

    def __str__(self) -> str:
        return f"{self.moment} {self.verb}"

    @classmethod
    def parse(cls, text: str) -> "Point":
        moment, _, verb = text.partition(" ")
        if moment not in MOMENTS:
            raise ValueError(f"{text!r} does not begin with one of {MOMENTS}")
        return cls(moment, verb)


class Halt:
    """Stops the process at the n-th time it comes to the point."""

    def __init__(self, point: Point | None, hit: int = 1) -> None:
        self._point = point
        self._left = hit

    def watches(self, verb: str) -> bool:
        return self._point is not None and self._point.verb == verb

    def at(self, moment: str, verb: str) -> None:
        if self._point != (moment, verb):
            return
        self._left -= 1
        if self._left == 0:
            announce("halt", self._point)
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


class HaltingDatabase:
    """A database that stops the process at a named point, and announces the ends and elections it has committed.

    `calmly` it stops only when no other transaction is open, so that a process that will wake again holds no lock.
    """

    def __init__(self, database: Database, halt: Halt, calmly: bool = False) -> None:
        self._database = database
        self._halt = halt
        self._calmly = calmly
        self._led = False
        self._turn = asyncio.Lock()

    @property
    def dialect(self) -> Dialect:
        return self._database.dialect

    async def run(self, transaction: Transaction[T]) -> T:
        if not self._calmly:
            return await self._run(transaction)
        async with self._turn:
            return await self._run(transaction)

    async def _run(self, transaction: Transaction[T]) -> T:
        name = transaction.name
        self._halt.at("before", name)
        result = await self._database.run(self._watched(transaction))
        self._halt.at("after", name)
        self._announce(name, result)
        return result

    def subscribe(self, channel: str, callback: Callable[[str], None]) -> Subscription:
        return self._database.subscribe(channel, callback)

    async def close(self) -> None:
        await self._database.close()

    def _watched(self, transaction: Transaction[T]) -> Transaction[T]:
        if not self._halt.watches(transaction.name):
            return transaction

        def begin() -> Script[T]:
            result = yield from transaction.begin()
            self._halt.at("inside", transaction.name)
            return result

        return Transaction(transaction.name, begin, transaction.kind)

    def _announce(self, name: str, result: Any) -> None:
        if name in ENDS:
            announce("ended", name)
        elif name == "heartbeat":
            announce("beat", result.alive)
        elif name == "fire" and result is not None:
            announce("fired")
        elif name == "lead":
            if result and not self._led:
                announce("elected")
            self._led = bool(result)
