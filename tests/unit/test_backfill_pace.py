"""The pace of a backfill: smooth, without bursts, and never faster than its rate."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.mailboxes.backfill.pace import HOUR_S, LARGEST_BATCH, Pace


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("per_hour", "at_once"), [(1, 1), (100, 1), (3_600, 1), (7_200, 2), (36_000, 10), (1_000_000, LARGEST_BATCH)]
)
def test_at_most_a_second_s_worth_is_read_at_once_and_at_least_one(per_hour: int, at_once: int) -> None:
    assert Pace(per_hour, Clock()).at_once == at_once


def test_messages_are_spread_evenly() -> None:
    clock = Clock()
    pace = Pace(100, clock)
    assert pace.wait_s() == 0
    pace.take(1)
    assert pace.wait_s() == 36
    clock.now += 10
    assert pace.wait_s() == 26


def test_a_pause_earns_no_burst() -> None:
    clock = Clock()
    pace = Pace(100, clock)
    clock.now += 10 * HOUR_S
    pace.take(1)
    assert pace.wait_s() == 36


def test_the_switchboard_s_wait_holds_across_restarts() -> None:
    clock = Clock()
    pace = Pace(100, clock, wait_s=20)
    assert pace.wait_s() == 20
    pace.hold(5)
    assert pace.wait_s() == 20
    pace.hold(50)
    assert pace.wait_s() == 50


@given(st.integers(1, 1_000_000), st.lists(st.floats(0, 100), min_size=1, max_size=50))
def test_no_span_of_time_has_more_messages_than_the_rate_allows(per_hour: int, pauses: list[float]) -> None:
    clock = Clock()
    pace = Pace(per_hour, clock)
    taken: list[tuple[float, int]] = []
    for pause in pauses:
        clock.now += pause
        clock.now += pace.wait_s()
        taken.append((clock.now, pace.at_once))
        pace.take(pace.at_once)
    for first, (begun, _) in enumerate(taken):
        count = 0
        for moment, batch in taken[first:]:
            count += batch
            assert count <= (moment - begun) * per_hour / HOUR_S + pace.at_once + 1e-6
