"""A SQLite database that does not exist yet, for commands in a folder where nothing was done.

Looking must leave no trace: reads run on an empty database in memory, and what they miss there is not here yet. The
file is created when the schema is, by a command that begins with it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import apsw

from postroom.core.errors import NothingHere, SchemaMismatch
from postroom.store.engine.database import Database, Dialect, Subscription, Transaction
from postroom.store.engine.listeners import Listeners
from postroom.store.engine.sqlite_connection import Executor, drive, translated
from postroom.store.engine.statements import blocks

T = TypeVar("T")


class UncreatedDatabase:
    """Stands for a database until its schema is created; `create` opens it."""

    dialect: Dialect = "sqlite"

    def __init__(self, data_dir: Path, create: Callable[[], Database]) -> None:
        self._data_dir = data_dir
        self._create = create
        self._created: Database | None = None
        self._listeners = Listeners()

    async def run(self, transaction: Transaction[T]) -> T:
        if self._created is None and transaction.kind == "schema":
            self._created = self._create()
        if self._created is not None:
            return await self._created.run(transaction)
        try:
            with translated(self._data_dir):
                return drive(transaction.begin(), Executor(apsw.Connection(":memory:"), blocks("sqlite")))
        except SchemaMismatch:
            raise NothingHere(
                f"nothing here yet: there is no data of Postroom in {self._data_dir}; start with `postroom init`, "
                "try `postroom demo`, or name the right folder with --data-dir"
            ) from None

    def subscribe(self, channel: str, callback: Callable[[str], None]) -> Subscription:
        if self._created is not None:
            return self._created.subscribe(channel, callback)
        return self._listeners.add(channel, callback)

    async def close(self) -> None:
        if self._created is not None:
            await self._created.close()
