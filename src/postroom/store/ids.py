"""UUIDv7: ids that sort by the time they were made, so that indexes grow at one end (RFC 9562, section 5.7)."""

import os
import threading
import time
from uuid import UUID

_POOL_BYTES = 10 * 256
_VERSION = 0x7 << 76
_VARIANT = 0x2 << 62
_RANDOM = (1 << 74) - 1


class _Entropy(threading.local):
    """Random bytes fetched in bulk: a system call per id would be most of its cost."""

    pool = b""
    used = 0

    def take(self) -> bytes:
        if self.used >= len(self.pool):
            self.pool, self.used = os.urandom(_POOL_BYTES), 0
        self.used += 10
        return self.pool[self.used - 10 : self.used]


_entropy = _Entropy()


def _forget_inherited_entropy() -> None:
    """A forked child must not repeat its parent's ids."""
    global _entropy
    _entropy = _Entropy()


os.register_at_fork(after_in_child=_forget_inherited_entropy)


def new_id() -> UUID:
    """A new UUIDv7 of this moment."""
    random = int.from_bytes(_entropy.take(), "big") & _RANDOM
    milliseconds = time.time_ns() // 1_000_000
    high, low = random >> 62, random & ((1 << 62) - 1)
    return UUID(int=milliseconds << 80 | _VERSION | high << 64 | _VARIANT | low)
