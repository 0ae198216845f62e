"""What a piece of work costs, measured so that two costs of one test can be compared on any machine.

A test that says "within two seconds" is about the machine. One that says "for no more than a loop of so many turns
takes beside it" is about the code.
"""

import time
from collections.abc import Callable
from functools import cache
from typing import TypeVar

T = TypeVar("T")

TRIES = 5
MILLION = 1_000_000
_PART = 100_000


def least_cost(work: Callable[[], object], tries: int = TRIES) -> float:
    """Processor time of this thread, in seconds: the best of a few tries, as other load slows some of them down."""
    return min(_measured(work)[1] for _ in range(tries))


def within_turns(turns: int, work: Callable[[], T]) -> T:
    """Does the work, for which it may take no more processor time than so many turns of a plain loop take.

    A million of them take some 50 ms on a machine of 2026.
    """
    result, cost = _measured(work)
    if cost > turns * _usual_turn_s():
        cost = least_cost(work)
        allowed = turns * _turn_s()
        assert cost <= allowed, f"took {cost:.3f} s of processor time; {turns:,} turns of a loop take {allowed:.3f} s"
    return result


def _measured(work: Callable[[], T]) -> tuple[T, float]:
    begun = time.thread_time()
    result = work()
    return result, time.thread_time() - begun


@cache
def _usual_turn_s() -> float:
    """Measured once: quick work is not made slow by measuring the machine again and again."""
    return _turn_s()


def _turn_s() -> float:
    return least_cost(lambda: sum(number * number for number in range(_PART))) / _PART
