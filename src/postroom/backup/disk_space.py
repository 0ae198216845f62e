"""Errors of `backup` and `restore` when the disk is full: they name the space needed and the space free."""

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import apsw

from postroom.core.errors import BackupError, DatabaseFull

_MIB = 1 << 20


@contextmanager
def enough_space(what: str, folder: Path, needed: int) -> Generator[None]:
    """Turn errors of writing into a BackupError that names the space needed in the folder."""
    try:
        yield
    except (ConnectionError, TimeoutError):
        raise
    except (OSError, apsw.FullError, apsw.IOError, DatabaseFull) as error:
        reason = (error.strerror if isinstance(error, OSError) else str(error)) or type(error).__name__
        raise BackupError(
            f"{what} could not be written ({reason}): it needs about {in_mib(needed)} in {folder}, where "
            f"{in_mib(free_bytes(folder))} are free; free some space, or choose another place"
        ) from error


def size_of(*files: Path) -> int:
    """The size of files and folders in bytes, with everything in them."""
    found = [each for file in files for each in (file, *file.rglob("*")) if each.is_file()]
    return sum(each.stat().st_size for each in found)


def free_bytes(folder: Path) -> int:
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return shutil.disk_usage(folder).free


def in_mib(size: int) -> str:
    return f"{size / _MIB:,.1f} MiB"
