"""One `serve` for one SQLite file: a lock in the data folder that the system drops when the process ends.

Commands and workers may run beside it; two processes that both watch the mailboxes and serve requests are a mistake.
"""

import contextlib
import fcntl
import os
from collections.abc import Callable, Generator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from postroom.core.errors import AlreadyServed
from postroom.system.file_locks import take_lock
from postroom.system.folder_errors import check_private, folder_error

FILE = "serve.lock"


class Served(NamedTuple):
    """The process that serves a folder. The address is empty until it answers."""

    process: str
    address: str
    since: datetime


def served_by(folder: Path) -> Served | None:
    """Who serves this folder now; None if nobody does."""
    try:
        descriptor = os.open(folder / FILE, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None
    except BlockingIOError:
        process, address, *_ = [*os.pread(descriptor, 500, 0).decode("utf-8", "replace").splitlines(), "", ""]
        return Served(process or "?", address, datetime.fromtimestamp(os.fstat(descriptor).st_mtime, UTC))
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def serve_lock(folder: Path) -> Generator[Callable[[str], None]]:
    """Hold the lock while the block runs. Raises AlreadyServed if another process holds it.

    Call what it yields with the address, once there is one, so that other commands can name it.

    The file stays when the lock is dropped: removing it could take away the lock of the next process.
    """
    check_private(folder)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(folder / FILE, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise folder_error(folder, error) from error
    own = f"{os.getpid()}\n".encode()
    try:
        try:
            take_lock(descriptor, fcntl.LOCK_EX)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, own, 0)
        except BlockingIOError:
            holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").partition("\n")[0]
            raise AlreadyServed(
                f"Postroom is already served from {folder}, by process {holder or '?'}; stop it first, or use "
                "another --data-dir. (Other commands, and `postroom worker`, may run beside it.)"
            ) from None
        except OSError as error:
            raise folder_error(folder, error) from error

        def note(address: str) -> None:
            os.pwrite(descriptor, f"{address}\n".encode(), len(own))

        yield note
    finally:
        os.close(descriptor)
