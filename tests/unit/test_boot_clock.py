"""The clock for durations counts sleep and never goes backwards."""

import time

from postroom.system.boot_clock import since_boot


def test_it_is_the_clock_that_counts_sleep() -> None:
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    between = since_boot()
    after = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert before <= between <= after


def test_it_never_goes_back() -> None:
    moments = [since_boot() for _ in range(1000)]
    assert moments == sorted(moments)
