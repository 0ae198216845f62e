"""What a piece of work costs, measured so that two costs of one test can be compared on any machine.

A test that says "within two seconds" is about the machine. One that says "a text four times as long costs less than
sixteen times as much" is about the code.
"""

import time
from collections.abc import Callable

TRIES = 5


def least_cost(work: Callable[[], object], tries: int = TRIES) -> float:
    """Processor time of this thread, in seconds: the best of a few tries, as other load slows some of them down."""
    return min(_cost(work) for _ in range(tries))


def _cost(work: Callable[[], object]) -> float:
    begun = time.thread_time()
    work()
    return time.thread_time() - begun
