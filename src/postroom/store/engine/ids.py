"""UUIDv7: ids that sort by creation time, so that indexes grow at one end (RFC 9562, section 5.7)."""

import os
import struct
import threading
import time
from uuid import UUID, SafeUUID

_POOL = 256
_VERSION = 0x7 << 76
_VARIANT = 0x2 << 62
_blank = object.__new__
_set = object.__setattr__


class _Entropy(threading.local):
    """Random bits fetched in bulk: a system call per id would be most of its cost."""

    def __init__(self) -> None:
        self.pool: list[tuple[int, int]] = []

    def refill(self) -> list[tuple[int, int]]:
        self.pool = list(struct.iter_unpack(">HQ", os.urandom(10 * _POOL)))
        return self.pool


_entropy = _Entropy()


def _forget_inherited_entropy() -> None:
    """Discard the inherited bits, so that a forked child does not repeat its parent's ids."""
    global _entropy
    _entropy = _Entropy()


os.register_at_fork(after_in_child=_forget_inherited_entropy)


def new_id() -> UUID:
    """A new UUIDv7. Bypasses UUID's own checks, which take longer than everything else."""
    high, low = (_entropy.pool or _entropy.refill()).pop()
    value = (
        (time.time_ns() // 1_000_000 << 80) | _VERSION | (high & 0xFFF) << 64 | _VARIANT | (low & 0x3FFFFFFFFFFFFFFF)
    )
    made = _blank(UUID)
    _set(made, "int", value)
    _set(made, "is_safe", SafeUUID.unknown)
    return made
