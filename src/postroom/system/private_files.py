"""Private files: only the owner can read what Postroom stores. Folders are 0700, files 0600.

`keep_private` sets the process's umask, so that libraries follow the rule too. Our own code writes files with
`private_folder`, `open_private` and `replace_private`. `make_private` corrects existing files on every start: from
earlier versions, copied back by hand, or created under another umask.
"""

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FOLDER_MODE = 0o700
FILE_MODE = 0o600
OTHERS = 0o077

DATABASE = "postroom.sqlite3"
# All that Postroom keeps in its data folder, by name. Other files there are left alone.
_OWN = (
    f"{DATABASE}*",
    "ballast",
    "keys.json*",
    ".keys.json*",
    "timeline.json*",
    "postroom.toml",
    "backup-*",
    "*.postroom-backup*",
)
BACKUPS = "backups"
OWN_FOLDERS = ("connectors", BACKUPS)


# Kept for as long as the data is; settings and backups that the user has made are not among them.
_DATA = (
    *(f"{DATABASE}*", "ballast", "keys.json*", ".keys.json*", "timeline.json*", "forms.secret*", "backup-replaced-*"),
    *("serve.lock", "restore.lock", "upgrade.lock", "this-is-a-demo", "mailbox.json*", ".restoring"),
)


class ExposedFile(NamedTuple):
    """A file or folder that users other than its owner can read or write."""

    path: Path
    mode: int
    wanted: int


def keep_private() -> None:
    """Make every file that this process creates from now on private to its owner."""
    os.umask(OTHERS)


def private_folder(path: Path) -> Path:
    """Create the folder and its parents where missing, and deny others access. Raises OSError."""
    path.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    _close(path, FOLDER_MODE)
    return path


def open_private(path: Path, flags: int) -> int:
    """Open a file as `os.open` does, and deny others access, even if it existed before."""
    handle = os.open(path, flags, FILE_MODE)
    if stat.S_IMODE(os.fstat(handle).st_mode) & OTHERS:
        with contextlib.suppress(OSError):
            os.fchmod(handle, FILE_MODE)
    return handle


def replace_private(path: Path, content: bytes) -> None:
    """Replace the whole file, durably: a crash leaves either the old content or the new."""
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")
    handle = open_private(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):  # not every file system can sync a folder
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def make_private(data_dir: Path) -> list[ExposedFile]:
    """Deny others access to the data folder and our files in it; return those that were accessible."""
    return [loose for loose in exposed_files(data_dir) if _close(loose.path, loose.wanted)]


def exposed_files(data_dir: Path) -> list[ExposedFile]:
    """Files in the data folder, and the folder itself, that users other than the owner can read or write."""
    found: list[ExposedFile] = []
    for path, wanted in _private_paths(data_dir):
        with contextlib.suppress(OSError):  # deleted in the meantime
            status = path.lstat()
            if not stat.S_ISLNK(status.st_mode) and stat.S_IMODE(status.st_mode) & OTHERS:
                found.append(ExposedFile(path, stat.S_IMODE(status.st_mode), wanted))
    return found


def holds_data(folder: Path) -> bool:
    """Whether Postroom has kept something there; False if that cannot be told."""
    return any(os.path.exists(folder / name) for name in (DATABASE, "keys.json", "connectors"))


def files_kept(data_dir: Path) -> list[Path]:
    """The files and folders of the data folder in which Postroom keeps data: not the settings, nor other backups."""
    folders = [data_dir / name for name in OWN_FOLDERS if os.path.lexists(data_dir / name)]
    return [path for pattern in _DATA for path in sorted(data_dir.glob(pattern))] + folders


def is_open_to_others(path: Path) -> bool:
    """Whether users other than the owner can read the file; False if it does not exist."""
    try:
        return bool(stat.S_IMODE(path.stat().st_mode) & OTHERS)
    except OSError:
        return False


def _private_paths(data_dir: Path) -> Iterator[tuple[Path, int]]:
    if not data_dir.is_dir():
        return
    yield data_dir, FOLDER_MODE
    for pattern in _OWN:
        for path in sorted(data_dir.glob(pattern)):
            yield path, FOLDER_MODE if path.is_dir() else FILE_MODE
    for name in OWN_FOLDERS:
        for folder, _, files in os.walk(data_dir / name):
            yield Path(folder), FOLDER_MODE
            yield from ((Path(folder, each), FILE_MODE) for each in sorted(files))


def _close(path: Path, mode: int) -> bool:
    """Set the mode. False if we do not own the file or the file system has no modes; `doctor` reports those."""
    try:
        if stat.S_IMODE(path.stat().st_mode) & OTHERS:
            path.chmod(mode)
        return not stat.S_IMODE(path.stat().st_mode) & OTHERS
    except OSError:
        return False
