"""Settles a process that is about to serve."""

import gc


def settle_memory() -> None:
    """What was loaded by now stays for good: the garbage collector need not look at it again and again, which would
    stop everything for a tenth of a second at a time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)
