"""An SQLite file of a connector, closed while nobody needs it: a process may hold the indexes of a thousand accounts
that rest, and each open one takes memory and files.

What is in it can be rebuilt from the mailbox, so a damaged file is set aside, and an empty one takes its place.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import apsw
import structlog

from postroom.core.errors import StoreError
from postroom.system.private_files import private_folder

log = structlog.get_logger()

WAIT_MS = 5000
CACHE_KIB = 2048
LOG_PAGES = 250
"""The write-ahead log is kept when the file is closed, and read when it is opened: it must not be long."""


class IndexFile:
    """The file at `path` with these tables, or tables in memory without a path. Errors are StoreError."""

    def __init__(self, path: Path | None, schema: Sequence[str], synchronous: Literal["normal", "full"]) -> None:
        if path is not None:
            private_folder(path.parent)
        self._path = path
        self._setup = (
            "PRAGMA journal_mode = wal",
            f"PRAGMA synchronous = {synchronous}",
            f"PRAGMA cache_size = -{CACHE_KIB}",
            f"PRAGMA wal_autocheckpoint = {LOG_PAGES}",
            *schema,
        )
        self._is_checked = False
        self._connection: apsw.Connection | None = None
        self.run("SELECT 1")

    def run(self, statement: str, *given: Any) -> list[tuple[Any, ...]]:
        """The rows of one statement, committed by itself."""
        return self.run_all([(statement, given)])

    def run_all(self, statements: Sequence[tuple[str, tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
        """All of them in one transaction, or none; the rows of the last."""
        try:
            connection = self._ready_connection()
            if len(statements) == 1:
                return connection.execute(*statements[0]).fetchall()
            rows: list[tuple[Any, ...]] = []
            connection.execute("BEGIN IMMEDIATE").fetchall()
            try:
                for sql, given in statements:
                    rows = connection.execute(sql, given).fetchall()
                connection.execute("COMMIT").fetchall()
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK").fetchall()
                raise
            return rows
        except apsw.Error as error:
            raise StoreError(
                f"{self._path or 'a list in memory'} cannot be read or written ({error}); "
                "check that its disk works and has room"
            ) from error

    def close(self) -> None:
        """Close the file until it is used again."""
        if self._connection is not None and self._path is not None:
            self._connection.close()
            self._connection = None

    def _ready_connection(self) -> apsw.Connection:
        if self._connection is None:
            try:
                self._connection = self._open()
            except (apsw.NotADBError, apsw.CorruptError):
                if self._path is not None:
                    _set_aside(self._path)
                self._connection = self._open()
        return self._connection

    def _open(self) -> apsw.Connection:
        connection = apsw.Connection(":memory:" if self._path is None else str(self._path))
        try:
            connection.set_busy_timeout(WAIT_MS)
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            for statement in self._setup:
                connection.execute(statement).fetchall()
            if not self._is_checked:
                if (verdict := connection.execute("PRAGMA quick_check").fetchall()) != [("ok",)]:
                    raise apsw.CorruptError(str(verdict[:3]))
                # The check has read all of it.
                connection.execute("PRAGMA shrink_memory").fetchall()
                self._is_checked = True
        except BaseException:
            connection.close()
            raise
        return connection


def _set_aside(path: Path) -> None:
    log.warning("connector.index_damaged", file=path.name)
    path.replace(path.with_name(f"{path.name}.damaged"))
    for suffix in ("-wal", "-shm"):
        path.with_name(f"{path.name}{suffix}").unlink(missing_ok=True)
