"""A lock on an open file that is had at once, or not at all; the system drops it when the file is closed.

To see whether a lock is held, a process has to take it for a moment. So a refusal counts only if it lasts.
"""

import fcntl
import time

TRIES = 20
BETWEEN_S = 0.01


def take_lock(descriptor: int, operation: int) -> None:
    """Take the lock, `LOCK_EX` or `LOCK_SH`. Raises BlockingIOError if another process keeps it."""
    for _ in range(TRIES - 1):
        try:
            return fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(BETWEEN_S)
    return fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
