"""Copies a SQLite database that is being written to: one snapshot, page by page, then verified as a whole."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import apsw

from postroom.backup.archive import Progress, silent
from postroom.core.errors import BackupError, DatabaseInUse
from postroom.store.engine.sqlite_connection import connect
from postroom.system.private_files import open_private

PAGES_AT_ONCE = 2048
_MAGIC = b"SQLite format 3\0"


def is_sqlite(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def copy_sqlite(source: Path, target: Path, progress: Progress = silent) -> None:
    """Copy a snapshot of the source. Writers are not blocked."""
    os.close(open_private(target, os.O_CREAT | os.O_EXCL | os.O_RDWR))
    reading, writing = connect(source, read_only=True), apsw.Connection(str(target))
    try:
        reading.execute("BEGIN")
        reading.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # the snapshot begins with the first read
        with writing.backup("main", reading, "main") as backup:
            while not backup.done:
                backup.step(PAGES_AT_ONCE)
                progress(source.name, backup.page_count - backup.remaining, backup.page_count)
        reading.execute("ROLLBACK")
        # Make it a single file, without a log next to it that could be forgotten.
        writing.execute("PRAGMA journal_mode = DELETE").fetchall()
    finally:
        reading.close()
        writing.close()
    with target.open("rb") as file:
        os.fsync(file.fileno())


def check_sqlite(path: Path) -> dict[str, int]:
    """Count the rows of each table. Raises BackupError if the file is damaged."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        problems = connection.execute("PRAGMA integrity_check(5)").fetchall()
        if problems != [("ok",)]:
            raise BackupError(f"{path.name} is damaged ({problems[0][0]}); use an older backup")
        tables = connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name"
        ).fetchall()
        return {name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchall()[0][0] for (name,) in tables}  # noqa: S608
    except apsw.Error as error:
        raise BackupError(f"{path.name} is damaged ({type(error).__name__}); use an older backup") from None
    finally:
        connection.close()


def migrations_in(path: Path) -> dict[int, str]:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return dict(connection.execute("SELECT version, checksum FROM schema_migrations").fetchall())
    finally:
        connection.close()


@contextmanager
def exclusive_access(path: Path) -> Generator[None]:
    """Hold the database exclusively while the block runs; its write-ahead log is gone then.

    Raises DatabaseInUse if another program has it open. A missing file, or one that is not a database, is never in use.
    """
    if not path.exists():
        yield
        return
    connection = apsw.Connection(str(path))
    try:
        _lock_exclusively(connection, path)
        yield
    finally:
        connection.close()


def _lock_exclusively(connection: apsw.Connection, path: Path) -> None:
    """Leave WAL mode, which only works if no other program has the database open."""
    try:
        connection.set_busy_timeout(0)
        mode = connection.execute("PRAGMA journal_mode = DELETE").fetchall()[0][0]
        if mode != "wal":
            connection.execute("BEGIN EXCLUSIVE")
            return
    except apsw.BusyError:
        pass
    except (apsw.NotADBError, apsw.CorruptError):
        return  # not a database; it is going to be replaced
    raise DatabaseInUse(f"{path} is in use; stop every process on it first")
