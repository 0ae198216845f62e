"""The lock of a data folder: every process that uses the folder shares it, and a restore holds it exclusively.

Every process that opens the SQLite file, and every connector that keeps its state in the folder, shares the lock. So if
a process starts during a restore, one of them is refused, and a database that is about to be replaced acknowledges
nothing. The system drops the lock when the process ends. PostgreSQL has an equivalent advisory lock (`RESTORE_LOCK`),
which every connection shares.
"""

import contextlib
import fcntl
import os
from collections.abc import Generator
from pathlib import Path

from postroom.core.errors import DatabaseInUse
from postroom.system.file_locks import take_lock
from postroom.system.folder_errors import check_private, folder_error
from postroom.system.private_files import open_private, private_folder

FILE = "restore.lock"
RESTORE_LOCK = 7305418627337


def share_folder(folder: Path) -> int | None:
    """Take the shared lock and return its descriptor; closing that releases it. Raises DatabaseInUse during a restore.

    Returns None if no file can be created: opening the database gives a better error.
    """
    try:
        descriptor = open_private(folder / FILE, os.O_RDWR | os.O_CREAT)
    except OSError:
        return None
    try:
        take_lock(descriptor, fcntl.LOCK_SH)
    except BlockingIOError:
        holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
        os.close(descriptor)
        raise DatabaseInUse(
            f"{folder} is being restored by process {holder or '?'}; start again when that has ended"
        ) from None
    except OSError as error:
        os.close(descriptor)
        raise folder_error(folder, error) from error
    return descriptor


@contextlib.contextmanager
def sharing_folder(folder: Path) -> Generator[None]:
    """Use the folder while the block runs, so that nothing is restored into it."""
    descriptor = share_folder(folder)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def is_shared(folder: Path) -> bool:
    """Whether a process uses the folder at this moment."""
    try:
        descriptor = os.open(folder / FILE, os.O_RDWR)
    except OSError:
        return False
    try:
        take_lock(descriptor, fcntl.LOCK_EX)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


@contextlib.contextmanager
def exclusive_folder(folder: Path) -> Generator[None]:
    """Keep other processes out of the folder while the block runs. Raises DatabaseInUse if one uses it."""
    check_private(folder)
    descriptor = open_private(private_folder(folder) / FILE, os.O_RDWR | os.O_CREAT)
    try:
        try:
            take_lock(descriptor, fcntl.LOCK_EX)
        except BlockingIOError:
            raise DatabaseInUse(f"{folder} is in use; stop every Postroom process on it first") from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)
