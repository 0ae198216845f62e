"""The gaps between the statements of a transaction, and a database that stops the process dead in one of them.

A gap is named after what comes next: a statement, `notify`, `commit` when all is said and nothing is durable, or
`answer` when it is durable and nobody in the process knows of it yet. `lease before lease_inbox` is such a name.
SQLite runs some blocks as several statements; `lease_inbox.2` is the second of one.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

from postroom.store.engine.database import Database, Dialect, Notify, Script, Statement, Step, Subscription, Transaction
from postroom.store.engine.sqlite import SqliteDatabase
from postroom.store.engine.statements import blocks
from support.processes import announce

T = TypeVar("T")

COMMIT = "commit"
ANSWER = "answer"


class Gap(NamedTuple):
    """One place in a transaction."""

    verb: str
    before: str

    def __str__(self) -> str:
        return f"{self.verb} before {self.before}"

    @classmethod
    def parse(cls, text: str) -> "Gap":
        verb, _, before = text.partition(" before ")
        if not before:
            raise ValueError(f"{text!r} is no gap; write it as 'lease before commit'")
        return cls(verb, before)


class _Watched:
    """A database that looks at every step of every writing transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def dialect(self) -> Dialect:
        return self._database.dialect

    async def run(self, transaction: Transaction[T]) -> T:
        if transaction.kind != "write":
            return await self._database.run(transaction)
        result = await self._database.run(transaction._replace(begin=lambda: self._stepping(transaction)))
        self.comes_to(Gap(transaction.name, ANSWER))
        return result

    def subscribe(self, channel: str, callback: Callable[[str], None]) -> Subscription:
        return self._database.subscribe(channel, callback)

    async def close(self) -> None:
        await self._database.close()

    def comes_to(self, gap: Gap) -> None:
        raise NotImplementedError

    def _stepping(self, transaction: Transaction[T]) -> Script[T]:
        script = transaction.begin()
        try:
            step = next(script)
            while True:
                self.comes_to(Gap(transaction.name, _called(step)))
                step = script.send((yield step))
        except StopIteration as end:
            self.comes_to(Gap(transaction.name, COMMIT))
            return end.value
        finally:
            script.close()


def _called(step: Step) -> str:
    match step:
        case Statement(name, _):
            return name
        case Notify():
            return "notify"
        case _:
            raise AssertionError(f"{step} is no step of the inbox")


class GapsSeen(_Watched):
    """Remembers every gap that was passed: between them, they are all the places to die in."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.seen: dict[Gap, None] = {}

    def comes_to(self, gap: Gap) -> None:
        self.seen[gap] = None

    def on(self, dialect: Dialect) -> list[Gap]:
        """The gaps as this database has them, in the order of their first use."""
        return [Gap(gap.verb, part) for gap in self.seen for part in _parts(gap.before, dialect)]


def _parts(before: str, dialect: Dialect) -> Iterator[str]:
    yield before
    for number in range(2, len(blocks(dialect).get(before, ())) + 1):
        yield f"{before}.{number}"


class HaltingInGap(_Watched):
    """Stops the process at the n-th time it comes to the gap, and announces it. Without a gap, it never does."""

    def __init__(self, database: Database, gap: Gap | None, hit: int = 1) -> None:
        super().__init__(database)
        self._gap = gap
        self._left = hit
        self._verb = ""
        statement, _, part = gap.before.partition(".") if gap is not None else ("", "", "")
        if part:
            assert isinstance(database, SqliteDatabase), f"{gap}: only SQLite runs a block in parts"
            self._part = blocks("sqlite")[statement][int(part) - 1].text
            connection: Any = database._connection  # the stubs hold only what the product uses
            connection.exec_trace = self._comes_to_part

    def comes_to(self, gap: Gap) -> None:
        self._verb = gap.verb
        if gap == self._gap:
            self._halt()

    def _comes_to_part(self, _cursor: Any, text: str, _bindings: Any) -> bool:
        if self._gap is not None and self._verb == self._gap.verb and text == self._part:
            self._halt()
        return True

    def _halt(self) -> None:
        self._left -= 1
        if self._left == 0:
            announce("halt", self._gap)
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
