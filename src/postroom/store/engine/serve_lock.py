"""One `serve` for one SQLite file: a lock in the data folder that the system drops when the process ends.

Commands and workers may run beside it; two processes that both watch the mailboxes and serve requests are a mistake.
"""

import contextlib
import fcntl
import os
from collections.abc import Generator
from pathlib import Path

from postroom.core.errors import AlreadyServed, DatabaseReadOnly

FILE = "serve.lock"


@contextlib.contextmanager
def serve_lock(folder: Path) -> Generator[None]:
    """Hold the lock while the block runs. Raises AlreadyServed if another process holds it.

    The file stays when the lock is dropped: removing it could take away the lock of the next process.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(folder / FILE, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise DatabaseReadOnly(
            f"the data folder {folder} cannot be used ({error.strerror}); choose one that you may write to with "
            "--data-dir"
        ) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
            raise AlreadyServed(
                f"Postroom is already served from {folder}, by process {holder or '?'}; stop it first, or use "
                "another --data-dir. (Other commands, and `postroom worker`, may run beside it.)"
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)
