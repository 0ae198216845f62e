"""The SQLite runner: one writer thread, one fsync for everyone who waits.

**Group commit.** The writer thread owns the only writing connection. It takes every transaction that is waiting,
runs them one after another as savepoints of one outer transaction, commits once, and only then answers them all.
A transaction that fails is rolled back to its own savepoint and hurts nobody else. While a commit waits for the
disk, the next group gathers: under load the cost of the fsync is shared by hundreds.

**When the whole group is void.** A full disk or an I/O error may make SQLite roll back the outer transaction. Then
nothing of the group was committed, so each of its transactions is run again, alone: the innocent succeed, the guilty
gets its own error. When the disk is full the ballast file is given up first, so that work can drain.

Readers have connections of their own and see the last commit; they never wait for the writer.
"""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic
from typing import Any, Generic, TypeVar

import apsw

from postroom.core import errors
from postroom.store.ballast import Ballast
from postroom.store.codecs import sqlite_value
from postroom.store.database import Course, Dialect, Notify, Rows, Script, Single, Statement, Step, Text, Transaction
from postroom.store.listeners import Listener, Listeners
from postroom.store.statements import Block, blocks

T = TypeVar("T")

READERS = 4
LARGEST_GROUP = 1024
BUSY_TIMEOUT_MS = 10_000
STEPS_PER_LOOK = 1_000
_SETTINGS = """
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA foreign_keys = ON;
    PRAGMA trusted_schema = OFF;
    PRAGMA cache_size = -65536;
    PRAGMA wal_autocheckpoint = 4096;
"""


class _Waiting(Generic[T]):
    """A transaction in the writer's hands, and who waits for its answer."""

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


class SqliteDatabase:
    """One SQLite file, opened for writing by one thread and for reading by a few."""

    dialect: Dialect = "sqlite"

    def __init__(self, path: Path, ballast: Ballast | None = None) -> None:
        self.path = path
        self._ballast = ballast
        self._blocks = blocks("sqlite")
        self._listeners = Listeners()
        self._inbox: queue.SimpleQueue[_Waiting[Any] | None] = queue.SimpleQueue()
        self._connection = connect(path)
        self._closed = False
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="postroom-read")
        self._reading = threading.local()
        self._read_connections: list[apsw.Connection] = []
        self._writer = threading.Thread(target=self._write_forever, name="postroom-write", daemon=True)
        self._writer.start()

    async def run(self, transaction: Transaction[T]) -> T:
        if self._closed:
            raise errors.DatabaseUnavailable("the database is closed; open it again")
        loop = asyncio.get_running_loop()
        if transaction.kind == "read":
            return await loop.run_in_executor(self._readers, self._read, transaction)
        waiting = _Waiting(transaction, loop)
        self._inbox.put(waiting)
        return await waiting.answer

    def subscribe(self, channel: str, callback: Callable[[str], None]) -> Listener:
        return self._listeners.add(channel, callback)

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._inbox.put(None)
            await asyncio.to_thread(self._writer.join)
            self._readers.shutdown()
            for connection in self._read_connections:
                connection.close()
            self._connection.close()

    def _read(self, transaction: Transaction[T]) -> T:
        connection = getattr(self._reading, "connection", None)
        if connection is None:
            with _translated(self.path):
                connection = self._reading.connection = connect(self.path, read_only=True)
            self._read_connections.append(connection)
        with _translated(self.path):
            connection.execute("BEGIN")
            try:
                with _bounded(connection, transaction.limit_s):
                    return drive(transaction.begin(), _Executor(connection, self._blocks))
            finally:
                connection.execute("ROLLBACK")

    def _write_forever(self) -> None:
        ending = False
        while not ending:
            group, ending = self._next_group()
            if group:
                self._answer(group, self._commit_safely(group))

    def _commit_safely(self, group: list[_Waiting[Any]]) -> list[Notify]:
        """Whatever goes wrong, everyone who waits gets an answer and the thread lives on."""
        try:
            return self._commit_group(group)
        except Exception as error:
            self._roll_back()
            for waiting in group:
                waiting.error = errors.StoreError(f"the write could not be made ({type(error).__name__}: {error})")
            return []

    def _next_group(self) -> tuple[list[_Waiting[Any]], bool]:
        """Everyone who waits now, at least one; and whether the database is being closed."""
        group: list[_Waiting[Any]] = []
        waiting = self._inbox.get()
        while waiting is not None:
            group.append(waiting)
            if len(group) == LARGEST_GROUP or self._inbox.empty():
                return group, False
            waiting = self._inbox.get()
        return group, True

    def _commit_group(self, group: list[_Waiting[Any]]) -> list[Notify]:
        """Runs the group and commits it; sets the result or the error of each. Returns who is to be woken."""
        executor = _Executor(self._connection, self._blocks)
        try:
            with _translated(self.path):
                self._connection.execute("BEGIN IMMEDIATE")
                for waiting in group:
                    self._run_in_savepoint(waiting, executor, alone=len(group) == 1)
                self._connection.execute("COMMIT")
            return executor.notices
        except errors.StoreError as error:
            self._roll_back()
            return self._after_void_group(group, error)

    def _run_in_savepoint(self, waiting: _Waiting[Any], executor: "_Executor", alone: bool) -> None:
        """One transaction of the group. Raises only when the outer transaction itself is gone."""
        waiting.error = None
        noticed = len(executor.notices)
        if not alone:
            self._connection.execute("SAVEPOINT one")
        try:
            with _translated(self.path):
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
        locked_out = isinstance(error, errors.DatabaseUnavailable)
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
            with contextlib.suppress(RuntimeError):  # the loop that asked is gone, and nobody waits there any more
                loop.call_soon_threadsafe(self._resolve, waitings, notices)

    def _resolve(self, waitings: Iterable[_Waiting[Any]], notices: list[Notify]) -> None:
        for waiting in waitings:
            waiting.resolve()
        for notice in notices:
            self._listeners.call(notice.channel, notice.message)


class _Executor:
    """Carries out the steps of a script on one connection."""

    def __init__(self, connection: apsw.Connection, blocks: dict[str, Block]) -> None:
        self._cursor = connection.cursor()
        self._blocks = blocks
        self.notices: list[Notify] = []

    def __call__(self, step: Step) -> Rows:
        match step:
            case Statement(name, parameters):
                rows: list[Any] = []
                for part in self._blocks[name]:
                    rows += self._cursor.execute(part.text, part.arguments(parameters)).fetchall()
                return rows
            case Single(statement, notice):
                self.notices.append(notice)
                return self(statement)
            case Notify():
                self.notices.append(step)
                return ()
            case Text(text):
                self._cursor.execute(text).fetchall()
                return ()


def drive(script: Script[T], execute: Callable[[Step], Rows]) -> T:
    """Runs a script to its end and returns what it returns."""
    course = Course(script)
    try:
        while course.step is not None:
            course.send(execute(course.step))
    finally:
        course.close()
    return course.result  # type: ignore[return-value] - a script that has ended has a result


def connect(path: Path, read_only: bool = False) -> apsw.Connection:
    """A connection with the settings that durability rests on."""
    flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    with _translated(path):
        connection = apsw.Connection(str(path), flags=flags, statementcachesize=512)
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        connection.convert_binding = lambda _cursor, _number, value: sqlite_value(value)
        if read_only:
            connection.execute("PRAGMA query_only = ON; PRAGMA cache_size = -16384;")
        else:
            connection.execute(_SETTINGS).fetchall()  # to the end: it stops at each PRAGMA that answers
    return connection


@contextlib.contextmanager
def _bounded(connection: apsw.Connection, limit_s: float | None) -> Generator[None]:
    """Interrupts what runs after the limit. SQLite looks at the clock every so many steps, also those of an index."""
    if limit_s is None:
        yield
        return
    deadline = monotonic() + limit_s
    connection.set_progress_handler(lambda: monotonic() >= deadline, STEPS_PER_LOOK)
    try:
        yield
    finally:
        connection.set_progress_handler(None)


def _voids_group(error: Exception) -> bool:
    return isinstance(error, errors.DatabaseFull | errors.DatabaseReadOnly | errors.DatabaseCorrupt)


@contextlib.contextmanager
def _translated(path: Path) -> Any:
    """SQLite's errors as ours, each with what to do about it."""
    try:
        yield
    except apsw.FullError as error:
        raise errors.DatabaseFull(f"the disk that holds {path} is full; free some space") from error
    except (apsw.ReadOnlyError, apsw.PermissionsError) as error:
        raise errors.DatabaseReadOnly(
            f"{path} cannot be written; check the permissions of the file and its folder, and that the disk is "
            "not mounted read-only"
        ) from error
    except apsw.CantOpenError as error:
        raise errors.DatabaseUnavailable(
            f"{path} cannot be opened; check that its folder exists and is yours"
        ) from error
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise errors.DatabaseCorrupt(
            f"{path} is damaged or no SQLite database ({error}); restore it from a backup, or name another --data-dir"
        ) from error
    except apsw.BusyError as error:
        raise errors.DatabaseUnavailable(
            f"{path} is locked by another process for over {BUSY_TIMEOUT_MS // 1000} s; end it, or try again"
        ) from error
    except apsw.InterruptError as error:
        raise errors.TookTooLong("SQLite was not done in the time there is; ask for less") from error
    except apsw.ConstraintError as error:
        raise errors.ConstraintBroken(str(error)) from error
    except apsw.SQLError as error:
        if "no such table" not in str(error):
            raise errors.StoreError(f"SQLite: {error}; see `postroom doctor`") from error
        raise errors.SchemaMismatch(f"{path} is not up to date ({error}); run `postroom migrate`") from error
    except apsw.Error as error:
        raise errors.StoreError(f"SQLite: {error}; see `postroom doctor`") from error
