"""A provider that fails is not asked for a while; then one call probes for all."""

from datetime import timedelta

import pytest

from postroom.core.errors import ModelUnavailable
from postroom.triage.decide.model_circuit_breaker import LONGEST_PAUSE, CircuitBreaker
from support.clocks import ManualClock


@pytest.fixture
def breaker() -> CircuitBreaker:
    return CircuitBreaker(timedelta(seconds=30))


def may_ask(breaker: CircuitBreaker, clock: ManualClock) -> bool:
    try:
        breaker.before_asking(clock())
    except ModelUnavailable:
        return False
    return True


def test_anyone_may_ask_while_it_answers(breaker: CircuitBreaker, clock: ManualClock) -> None:
    assert all(may_ask(breaker, clock) for _ in range(10))


def test_the_rest_grows_with_each_failure_up_to_a_minute(breaker: CircuitBreaker, clock: ManualClock) -> None:
    pauses: list[float] = []
    for _ in range(8):
        breaker.after_failing(clock(), None)
        began = clock()
        while not may_ask(breaker, clock):
            clock.forward(1)
        pauses.append((clock() - began).total_seconds())
    assert pauses == [2, 4, 8, 16, 32, 60, 60, 60]
    assert timedelta(seconds=60) == LONGEST_PAUSE


def test_the_providers_own_time_counts_before_ours(breaker: CircuitBreaker, clock: ManualClock) -> None:
    breaker.after_failing(clock(), timedelta(seconds=90))
    clock.forward(89)
    with pytest.raises(ModelUnavailable) as left_alone:
        breaker.before_asking(clock())
    assert left_alone.value.after == timedelta(seconds=1)
    clock.forward(1)
    assert may_ask(breaker, clock)


def test_a_rest_of_our_own_making_leaves_the_waiting_to_the_job(breaker: CircuitBreaker, clock: ManualClock) -> None:
    breaker.after_failing(clock(), None)
    with pytest.raises(ModelUnavailable) as left_alone:
        breaker.before_asking(clock())
    assert left_alone.value.after is None


def test_after_the_rest_one_asks_and_the_others_wait_for_what_comes_of_it(
    breaker: CircuitBreaker, clock: ManualClock
) -> None:
    breaker.after_failing(clock(), None)
    clock.forward(2)
    assert [may_ask(breaker, clock) for _ in range(3)] == [True, False, False]
    breaker.after_an_answer()
    assert [may_ask(breaker, clock) for _ in range(3)] == [True, True, True]


def test_when_the_one_who_asked_never_comes_back_another_may_ask(breaker: CircuitBreaker, clock: ManualClock) -> None:
    breaker.after_failing(clock(), None)
    clock.forward(2)
    assert may_ask(breaker, clock)
    clock.forward(30)
    assert may_ask(breaker, clock)


def test_when_nothing_came_of_asking_for_all_the_next_one_asks_at_once(
    breaker: CircuitBreaker, clock: ManualClock
) -> None:
    breaker.after_failing(clock(), None)
    clock.forward(2)
    probe = breaker.before_asking(clock())
    breaker.after_asking(probe)
    assert [may_ask(breaker, clock) for _ in range(3)] == [True, False, False]


def test_who_gives_up_late_takes_nothing_from_who_asks_for_all_now(breaker: CircuitBreaker, clock: ManualClock) -> None:
    unasked = breaker.before_asking(clock())
    breaker.after_failing(clock(), None)
    clock.forward(2)
    late = breaker.before_asking(clock())
    clock.forward(30)
    assert may_ask(breaker, clock)
    for probe in (unasked, late):
        breaker.after_asking(probe)
        assert not may_ask(breaker, clock)


def test_a_failure_that_was_told_stays_told(breaker: CircuitBreaker, clock: ManualClock) -> None:
    breaker.after_failing(clock(), None)
    clock.forward(2)
    probe = breaker.before_asking(clock())
    breaker.after_failing(clock(), None)
    breaker.after_asking(probe)
    assert not may_ask(breaker, clock)
