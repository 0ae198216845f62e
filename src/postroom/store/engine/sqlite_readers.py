"""Reads from a SQLite file: a few threads with a connection each, and snapshots of limited age.

A long-lived snapshot keeps the write-ahead log from being restarted (see `write_ahead_log.py`). Once the log is long, a
read older than `SNAPSHOT_S` is interrupted, and restarted when the log is short again: the verbs only read, so the
caller notices nothing but the time. A read that was interrupted `MOST_CUTS` times is too long for a database that is
written so fast, and ends with TookTooLong.

When something outside of this process holds the log, interrupting does not help. Reads then continue, and end after
`LAST_LIMIT_S` at the latest. A process that writes nothing finds that out by waiting.
"""

import threading
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import apsw

from postroom.core.errors import TookTooLong
from postroom.store.engine.database import Rows, Step, Transaction
from postroom.store.engine.sqlite_connection import Executor, connect, drive, translated
from postroom.store.engine.sqlite_file import SqliteFile
from postroom.store.engine.statements import Block
from postroom.store.engine.write_ahead_log import RESTART_BYTES, SNAPSHOT_S, WriteAheadLog

T = TypeVar("T")

READERS = 4
STEPS_PER_LOOK = 1_000
STEPS_PER_RARE_LOOK = 10_000  # each check takes Python's lock away from the writers
LOOK_AT_LOG_S = 0.01
MOST_CUTS = 4
LONGEST_WAIT_S = 30.0
LONGEST_WAIT_OF_LOOKERS_S = 5.0
LAST_LIMIT_S = 10.0


class _CutShort(Exception):
    """The log must be restarted, and this snapshot is in its way."""


class SqliteReaders:
    """All readers of this process."""

    def __init__(self, path: Path, blocks: dict[str, Block], log: WriteAheadLog, file: SqliteFile) -> None:
        self._path = path
        self._file = file
        self._blocks = blocks
        self._log = log
        self.threads = ThreadPoolExecutor(READERS, thread_name_prefix="postroom-read")
        self._own = threading.local()
        self._connections: list[apsw.Connection] = []

    def read(self, transaction: Transaction[T]) -> T:
        """Run it on one snapshot, in one of our threads, with as many attempts as needed.

        Whatever was found in a file that is not ours any more, or went wrong in it, is told as DatabaseReplaced.
        """
        try:
            return self._read(transaction)
        finally:
            self._file.check()

    def _read(self, transaction: Transaction[T]) -> T:
        deadline = None if transaction.limit_s is None else time.monotonic() + transaction.limit_s
        may_be_cut = True
        for _ in range(MOST_CUTS):
            try:
                return self._read_once(transaction, deadline, may_be_cut)
            except _CutShort:
                may_be_cut = self._log_became_short()
        raise TookTooLong(
            f"the read was interrupted {MOST_CUTS} times to keep the write-ahead log short; ask for less, or try again "
            "when less is written"
        )

    def close(self) -> None:
        self.threads.shutdown()
        for connection in self._connections:
            connection.close()

    def _read_once(self, transaction: Transaction[T], deadline: float | None, may_be_cut: bool) -> T:
        connection = self._connection()
        snapshot = _Snapshot(self._log, deadline, may_be_cut)
        with translated(self._path), self._log.snapshots:
            connection.execute("BEGIN")
            try:
                with snapshot.watched(connection):
                    return drive(transaction.begin(), snapshot.executing(Executor(connection, self._blocks)))
            finally:
                connection.execute("ROLLBACK")

    def _connection(self) -> apsw.Connection:
        connection: apsw.Connection | None = getattr(self._own, "connection", None)
        if connection is None:
            connection = self._own.connection = connect(self._path, read_only=True)
            self._connections.append(connection)
        return connection

    def _log_became_short(self) -> bool:
        """Wait until the log is short, or until waiting is clearly useless."""
        began = time.monotonic()
        while self._log.size >= RESTART_BYTES:
            waited = time.monotonic() - began
            if waited >= (LONGEST_WAIT_S if self._log.is_long else LONGEST_WAIT_OF_LOOKERS_S):
                return False
            if self._log.held_elsewhere:
                return False
            time.sleep(LOOK_AT_LOG_S)
        return True


class _Snapshot:
    """One attempt at a read, and what may end it: its own time limit, or a log that must be restarted."""

    def __init__(self, log: WriteAheadLog, deadline: float | None, may_be_cut: bool) -> None:
        now = time.monotonic()
        self._log = log
        self._may_be_cut = may_be_cut
        self._deadline = now + LAST_LIMIT_S if deadline is None and not may_be_cut else deadline
        self._next_look = now + SNAPSHOT_S
        self._is_cut = False

    def executing(self, execute: Executor) -> "_Watched":
        return _Watched(self, execute)

    @contextmanager
    def watched(self, connection: apsw.Connection) -> Generator[None]:
        """Check regularly whether to go on: SQLite calls back every so many steps, including those of an index."""
        connection.set_progress_handler(self.is_over, STEPS_PER_LOOK if self._deadline else STEPS_PER_RARE_LOOK)
        try:
            yield
        except apsw.InterruptError:
            if self._is_cut:
                raise _CutShort from None
            raise
        finally:
            connection.set_progress_handler(None)

    def is_over(self) -> bool:
        now = time.monotonic()
        if self._deadline is not None and now >= self._deadline:
            return True
        if self._may_be_cut and now >= self._next_look:
            self._next_look = now + LOOK_AT_LOG_S
            self._is_cut = self._log.size >= RESTART_BYTES and not self._log.held_elsewhere
        return self._is_cut


class _Watched:
    """Executes the steps of a read while its snapshot may exist."""

    def __init__(self, snapshot: _Snapshot, execute: Executor) -> None:
        self._snapshot = snapshot
        self._execute = execute

    def __call__(self, step: Step) -> Rows:
        if self._snapshot.is_over():
            raise apsw.InterruptError("between two statements")
        return self._execute(step)
