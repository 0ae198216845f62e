"""SQLite databases for tests, copied from one that is up to date."""

import os
import shutil
from pathlib import Path

from postroom.store.engine.ballast import SIZE
from postroom.store.engine.database import Database
from postroom.store.engine.opening import FILE, open_database
from postroom.system.private_files import open_private


async def new_sqlite(folder: Path, migrated: Path) -> Database:
    """A SQLite database in the folder, without the wait for its migrations and its ballast."""
    copy_sqlite(migrated, folder)
    return await open_database(folder)


def copy_sqlite(migrated: Path, folder: Path) -> None:
    """The ballast is of the right size, but a hole: to write it out takes longer than most tests."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.copy(migrated, folder / FILE)
    with os.fdopen(open_private(folder / "ballast", os.O_WRONLY | os.O_CREAT), "wb") as ballast:
        ballast.truncate(SIZE)
