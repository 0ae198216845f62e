"""One `serve` for one SQLite file: a lock in the data folder that the system itself drops when the process ends.

Commands and workers beside it are welcome; two that both watch the mailboxes and answer at the doors are a mistake.
"""

import contextlib
import fcntl
import os
from collections.abc import Generator
from pathlib import Path

from postroom.core.errors import AlreadyServed

FILE = "serve.lock"


@contextlib.contextmanager
def serve_lock(folder: Path) -> Generator[None]:
    """Held while the block runs. Raises AlreadyServed when another process holds it.

    The file stays when the lock goes: whoever removed it could take away the lock of the next one.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(folder / FILE, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
            raise AlreadyServed(
                f"Postroom is served from {folder} already, by process {holder or '?'}; stop that one first, or name "
                "another --data-dir. (Other commands, and `postroom worker`, may run beside it.)"
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)
