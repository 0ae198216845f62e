"""Opens the database that the settings name, checked and migrated."""

import contextlib
import os
from pathlib import Path

import structlog

from postroom.core.errors import BadInput, DatabaseReadOnly
from postroom.store.engine.ballast import Ballast
from postroom.store.engine.database import Database
from postroom.store.engine.migrate import migrate
from postroom.store.engine.sqlite import SqliteDatabase
from postroom.store.health import refuse_unsafe
from postroom.store.restore_lock import share_folder
from postroom.system.private_files import DATABASE, make_private, open_private, private_folder

log = structlog.get_logger()

FILE = DATABASE


async def open_database(data_dir: Path, url: str | None = None, *, allow_unsafe: bool = False) -> Database:
    """The database, ready for work: durable, and with the schema that this Postroom knows."""
    database = connect_database(data_dir, url, allow_unsafe=allow_unsafe)
    try:
        for loose in make_private(data_dir):
            log.warning("files.closed_to_others", path=str(loose.path), mode=f"{loose.mode:03o}")
        await refuse_unsafe(database, allow_unsafe)
        await migrate(database)
        if url is None:
            Ballast(data_dir / "ballast").take()
    except BaseException:
        await database.close()
        raise
    return database


def connect_database(data_dir: Path, url: str | None = None, *, allow_unsafe: bool = False) -> Database:
    """The database as it is, for those that look before they change anything."""
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
        raise BadInput("database_url", "is no PostgreSQL address", "write postgresql://user@host:5432/database")
    from postroom.store.engine.postgres import PostgresDatabase

    return PostgresDatabase(url, allow_unsafe=allow_unsafe)


def _make_folder(data_dir: Path) -> None:
    try:
        private_folder(data_dir)
    except OSError as error:
        raise DatabaseReadOnly(
            f"the data folder {data_dir} cannot be made ({error.strerror}); make it, or name another with --data-dir"
        ) from error


def _keep_private(file: Path) -> None:
    """Mail is nobody else's business: the file is made for its owner alone, and SQLite's own files follow it."""
    with contextlib.suppress(OSError):  # what is wrong here, opening it will say better
        # Only one that is new: to open and close one that is in use would drop every lock that this process has on it.
        os.close(open_private(file, os.O_CREAT | os.O_EXCL | os.O_RDWR))
