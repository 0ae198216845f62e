"""A clock for durations: it never jumps, and it keeps running while the process is stopped or the machine sleeps.

`time.monotonic` stops while a laptop sleeps: by that clock, a lease would be as fresh after a night as before.
All processes of one machine read the same clock.
"""

import time
from collections.abc import Callable

BootClock = Callable[[], float]

# Linux has a separate clock for this. Elsewhere CLOCK_MONOTONIC includes sleep, or no clock does.
_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def since_boot() -> float:
    """Seconds since the machine booted, including sleep."""
    return time.clock_gettime(_CLOCK)
