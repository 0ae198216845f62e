"""Opens the database that the settings name, checked and migrated."""

import contextlib
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import structlog

from postroom.core.errors import BadInput, DatabaseReadOnly
from postroom.store.engine.ballast import Ballast
from postroom.store.engine.database import Database
from postroom.store.engine.migrate import migrate
from postroom.store.engine.sqlite import SqliteDatabase
from postroom.store.engine.uncreated import UncreatedDatabase
from postroom.store.installation.health import refuse_unsafe
from postroom.system.folder_errors import check_private, folder_error, why_database_unusable
from postroom.system.private_files import DATABASE, make_private, open_private, private_folder
from postroom.system.restore_lock import share_folder

log = structlog.get_logger()

FILE = DATABASE


Migrating = Callable[[Database], Awaitable[object]]
"""Brings the schema up to date."""


async def open_database(
    data_dir: Path, url: str | None = None, *, allow_unsafe: bool = False, migrating: Migrating = migrate
) -> Database:
    """Open the database, ready for work: durable, and with the current schema."""
    if url is None and (problem := why_database_unusable(data_dir / FILE)):
        raise DatabaseReadOnly(problem)
    database = connect_database(data_dir, url, allow_unsafe=allow_unsafe)
    try:
        for loose in make_private(data_dir):
            log.warning("files.closed_to_others", path=str(loose.path), mode=f"{loose.mode:03o}")
        await refuse_unsafe(database, allow_unsafe)
        await migrating(database)
        if url is None:
            Ballast(data_dir / "ballast").take()
    except BaseException:
        await database.close()
        raise
    return database


def connect_database(data_dir: Path, url: str | None = None, *, allow_unsafe: bool = False) -> Database:
    """Connect to the database without changing anything, for commands that look first."""
    if url is None:
        _make_folder(data_dir)
        lock = share_folder(data_dir)
        try:
            _keep_private(data_dir / FILE)
            return SqliteDatabase(data_dir / FILE, Ballast(data_dir / "ballast"), lock)
        except BaseException:
            if lock is not None:
                os.close(lock)
            raise
    if not url.startswith(("postgresql://", "postgres://")):
        raise BadInput("database_url", "is not a PostgreSQL address", "write postgresql://user@host:5432/database")
    from postroom.store.engine.postgres import PostgresDatabase

    return PostgresDatabase(url, allow_unsafe=allow_unsafe)


def look_into(data_dir: Path, url: str | None = None, *, allow_unsafe: bool = False) -> Database:
    """Connect to the database if there is one. If not, none is created before its schema is."""

    def connected() -> Database:
        return connect_database(data_dir, url, allow_unsafe=allow_unsafe)

    if url is None and not _has_content(data_dir / FILE):
        return UncreatedDatabase(data_dir, connected)
    return connected()


def _has_content(file: Path) -> bool:
    """Whether there is a database. If that cannot be told, opening it will give a better error."""
    try:
        return file.stat().st_size > 0
    except NotADirectoryError as error:
        raise folder_error(file.parent, error) from error
    except FileNotFoundError as error:
        if file.parent.is_symlink() and not file.parent.exists():
            raise folder_error(file.parent, error) from error
        return False
    except OSError:
        return True


def _make_folder(data_dir: Path) -> None:
    check_private(data_dir)
    try:
        private_folder(data_dir)
    except OSError as error:
        raise folder_error(data_dir, error) from error


def _keep_private(file: Path) -> None:
    """Create the file readable by its owner only, since it contains mail; SQLite's own files get the same mode."""
    with contextlib.suppress(OSError):  # opening it will give a better error
        # Only a new file: opening and closing one that is in use would drop all locks that this process has on it.
        os.close(open_private(file, os.O_CREAT | os.O_EXCL | os.O_RDWR))
