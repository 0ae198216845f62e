"""A clock for durations: it never jumps, and it goes on while the process is stopped or the machine sleeps.

`time.monotonic` stands still while a laptop sleeps: judged by it, a lease would be as fresh after a night as before.
All processes of one machine read the same clock.
"""

import time
from collections.abc import Callable

BootClock = Callable[[], float]

# Linux has a clock of its own for this; elsewhere CLOCK_MONOTONIC includes sleep, or no clock does.
_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def since_boot() -> float:
    """Seconds since the machine was started, sleep included."""
    return time.clock_gettime(_CLOCK)
