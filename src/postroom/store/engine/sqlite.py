"""The SQLite runner: one writer thread, one fsync for all waiting transactions.

**Group commit.** The writer thread owns the only writing connection. It takes every transaction that is waiting, runs
them one after another as savepoints of one outer transaction, commits once, and only then answers them all. A
transaction that fails is rolled back to its own savepoint and affects no other. While a commit waits for the disk, the
next group gathers: under load hundreds share the cost of the fsync.

**When the whole group fails.** A full disk or an I/O error may make SQLite roll back the outer transaction. Then
nothing of the group was committed, so each of its transactions is run again alone: only the one at fault gets the
error. When the disk is full the ballast file is deleted first, so that work can finish.

Readers have connections of their own and see the last commit; they never wait for the writer (`sqlite_readers.py`). The
write-ahead log is kept short between two groups (`write_ahead_log.py`).
"""

import asyncio
import contextlib
import os
import queue
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Generic, TypeVar

import apsw

from postroom.core import errors
from postroom.store.engine.ballast import Ballast
from postroom.store.engine.database import Dialect, Notify, Transaction
from postroom.store.engine.listeners import Listener, Listeners
from postroom.store.engine.sqlite_connection import BUSY_TIMEOUT_MS, Executor, connect, drive, translated
from postroom.store.engine.sqlite_file import SqliteFile
from postroom.store.engine.sqlite_readers import SqliteReaders
from postroom.store.engine.statements import blocks
from postroom.store.engine.write_ahead_log import TRY_AGAIN_S, WriteAheadLog

T = TypeVar("T")

LARGEST_GROUP = 1024
# How often the writer looks whether another process has written: SQLite tells nobody.
LOOK_FOR_OTHERS_S = 2.0


class _Waiting(Generic[T]):
    """A transaction in the writer's queue, and the caller that waits for its answer."""

    __slots__ = ("answer", "error", "loop", "result", "transaction")

    def __init__(self, transaction: Transaction[T], loop: asyncio.AbstractEventLoop) -> None:
        self.transaction = transaction
        self.loop = loop
        self.answer: asyncio.Future[T] = loop.create_future()
        self.result: T | None = None
        self.error: BaseException | None = None

    def resolve(self) -> None:
        if self.answer.done():
            return
        if self.error is not None:
            self.answer.set_exception(self.error)
        else:
            self.answer.set_result(self.result)  # type: ignore[arg-type]


class _BeginLooking:
    """Put into the writer's queue when somebody listens: from then on it looks for writes of other processes."""


_BEGIN_LOOKING = _BeginLooking()


class SqliteDatabase:
    """One SQLite file, opened for writing by one thread and for reading by a few."""

    dialect: Dialect = "sqlite"

    def __init__(self, path: Path, ballast: Ballast | None = None, lock: int | None = None) -> None:
        """`lock` is the descriptor of a lock that is held as long as the database is open."""
        self.path = path
        self._ballast = ballast
        self._lock = lock
        self._blocks = blocks("sqlite")
        self._listeners = Listeners()
        self._inbox: queue.SimpleQueue[_Waiting[Any] | _BeginLooking | None] = queue.SimpleQueue()
        self._connection = connect(path)
        self._closed = False
        self._version = 0
        self._looked_at = time.monotonic()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._log = WriteAheadLog(path, lambda: connect(path), BUSY_TIMEOUT_MS)
        self._log.attach(self._connection)
        with translated(path):
            self._file = SqliteFile(path, self._connection)
        self._readers = SqliteReaders(path, self._blocks, self._log, self._file)
        self._writer = threading.Thread(target=self._write_forever, name="postroom-write", daemon=True)
        self._writer.start()

    async def run(self, transaction: Transaction[T]) -> T:
        if self._closed:
            raise errors.DatabaseUnavailable("the database is closed; open it again")
        loop = asyncio.get_running_loop()
        if transaction.kind == "read":
            return await loop.run_in_executor(self._readers.threads, self._readers.read, transaction)
        waiting = _Waiting(transaction, loop)
        self._inbox.put(waiting)
        return await waiting.answer

    def subscribe(self, channel: str, callback: Callable[[str], None]) -> Listener:
        """Call back at each signal; with an empty message when another process has written, whatever that was."""
        if self._loop is None:
            self._loop, self._looked_at = asyncio.get_running_loop(), float("-inf")
            self._inbox.put(_BEGIN_LOOKING)
        return self._listeners.add(channel, callback)

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._inbox.put(None)
            await asyncio.to_thread(self._writer.join)
            self._readers.close()
            self._log.close()
            self._connection.close()
            if self._lock is not None:
                os.close(self._lock)

    def _write_forever(self) -> None:
        ending = False
        while not ending:
            group, ending = self._next_group()
            if group:
                self._answer(group, self._commit_safely(group))
            self._keep_log_short()
            self._look_for_others()

    def _look_for_others(self) -> None:
        """Wake everybody if another process has written since the last look. Our own commits leave the number alone."""
        loop, now = self._loop, time.monotonic()
        if loop is None or now - self._looked_at < LOOK_FOR_OTHERS_S or self._file.is_lost:
            return
        self._looked_at = now
        with contextlib.suppress(apsw.Error):
            before, self._version = self._version, self._connection.execute("PRAGMA data_version").fetchall()[0][0]
            if before not in (0, self._version):
                with contextlib.suppress(RuntimeError):  # the loop is closed, so nobody listens
                    loop.call_soon_threadsafe(self._wake_everybody)

    def _wake_everybody(self) -> None:
        for channel in self._listeners.channels():
            self._listeners.call(channel, "")

    def _keep_log_short(self) -> None:
        """Restart the log between two groups, after the answers: only the next group waits for it."""
        if self._file.is_lost:
            return
        with contextlib.suppress(apsw.Error):  # the next commit reports what is wrong with the disk
            self._log.keep_short(self._connection)

    def _commit_safely(self, group: list[_Waiting[Any]]) -> list[Notify]:
        """Commit the group so that, whatever goes wrong, every caller gets an answer and the thread lives on."""
        try:
            return self._commit_group(group)
        except Exception as error:
            self._roll_back()
            for waiting in group:
                waiting.error = errors.StoreError(f"the write could not be made ({type(error).__name__}: {error})")
            return []

    def _next_group(self) -> tuple[list[_Waiting[Any]], bool]:
        """Everything that waits now (empty when it is time to look around), and whether the database is closed."""
        group: list[_Waiting[Any]] = []
        try:
            waiting = self._inbox.get(timeout=self._longest_rest_s)
        except queue.Empty:
            return group, False
        while waiting is not None:
            if isinstance(waiting, _Waiting):
                group.append(waiting)
            if len(group) == LARGEST_GROUP or self._inbox.empty():
                return group, False
            waiting = self._inbox.get()
        return group, True

    @property
    def _longest_rest_s(self) -> float | None:
        """How long to rest if nobody writes; for ever if nothing is to be looked for."""
        if self._log.is_long:
            return TRY_AGAIN_S
        return None if self._loop is None else LOOK_FOR_OTHERS_S

    def _commit_group(self, group: list[_Waiting[Any]]) -> list[Notify]:
        """Run the group and commit it; set the result or the error of each. Return the notices to send."""
        executor = Executor(self._connection, self._blocks)
        try:
            self._file.check()
            with translated(self.path):
                self._connection.execute("BEGIN IMMEDIATE")
                for waiting in group:
                    self._run_in_savepoint(waiting, executor, alone=len(group) == 1)
                self._connection.execute("COMMIT")
            self._file.check()
            return executor.notices
        except errors.StoreError as error:
            self._roll_back()
            return self._after_void_group(group, self._replacement_error() or error)

    def _replacement_error(self) -> errors.DatabaseReplaced | None:
        """Return the error of a replaced file, if it was: an overwritten file may cause any other error."""
        try:
            self._file.check()
        except errors.DatabaseReplaced as error:
            # Our log must not be copied into a file that somebody else put there.
            self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            return error
        return None

    def _run_in_savepoint(self, waiting: _Waiting[Any], executor: "Executor", alone: bool) -> None:
        """Run one transaction of the group. Raises only if the outer transaction itself is gone."""
        waiting.error = None
        noticed = len(executor.notices)
        if not alone:
            self._connection.execute("SAVEPOINT one")
        try:
            with translated(self.path):
                waiting.result = drive(waiting.transaction.begin(), executor)
        except Exception as error:
            if not self._connection.in_transaction or _voids_group(error):
                raise
            waiting.error = error
            del executor.notices[noticed:]
            self._connection.execute("ROLLBACK" if alone else "ROLLBACK TO one")
            if alone:
                self._connection.execute("BEGIN IMMEDIATE")
        if not alone:
            self._connection.execute("RELEASE one")

    def _after_void_group(self, group: list[_Waiting[Any]], error: errors.StoreError) -> list[Notify]:
        freed = isinstance(error, errors.DatabaseFull) and self._ballast is not None and self._ballast.give_up()
        locked_out = isinstance(error, errors.DatabaseUnavailable | errors.DatabaseReplaced)
        if locked_out or (len(group) == 1 and not freed):
            for waiting in group:
                waiting.error = error
            return []
        notices: list[Notify] = []
        for waiting in group:
            notices += self._commit_group([waiting])
        return notices

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            with contextlib.suppress(apsw.Error):
                self._connection.execute("ROLLBACK")

    def _answer(self, group: list[_Waiting[Any]], notices: list[Notify]) -> None:
        by_loop: dict[asyncio.AbstractEventLoop, list[_Waiting[Any]]] = {}
        for waiting in group:
            by_loop.setdefault(waiting.loop, []).append(waiting)
        for loop, waitings in by_loop.items():
            with contextlib.suppress(RuntimeError):  # the loop of the callers is gone, so nobody waits there
                loop.call_soon_threadsafe(self._resolve, waitings, notices)

    def _resolve(self, waitings: Iterable[_Waiting[Any]], notices: list[Notify]) -> None:
        for waiting in waitings:
            waiting.resolve()
        for notice in notices:
            self._listeners.call(notice.channel, notice.message)


def _voids_group(error: Exception) -> bool:
    return isinstance(error, errors.DatabaseFull | errors.DatabaseReadOnly | errors.DatabaseCorrupt)
