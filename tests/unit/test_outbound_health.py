"""The health of the outbound queue, and limits that adapt to it."""

from datetime import timedelta
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.outbound.health import adaptive_limits, queue_health
from postroom.core.outbound.priority import SenderLane

MINUTE = timedelta(minutes=1)
LANES: tuple[SenderLane, ...] = get_args(SenderLane)
queued, most = st.integers(0, 2_000_000), st.integers(1, 10_000)
waits = st.timedeltas(timedelta(0), timedelta(days=5))


@pytest.mark.parametrize(
    ("waiting", "minutes", "multiplier"),
    [
        (0, 0, 1.5),
        (29, 30, 1.5),
        (30, 0, 1.0),
        (80, 30, 1.0),
        (81, 0, 0.7),
        (81, 31, 0.35),
        (50, 31, 0.5),
        (10, 31, 0.75),
    ],
)
def test_the_multiplier_follows_length_and_age(waiting: int, minutes: int, multiplier: float) -> None:
    assert queue_health(waiting, minutes * MINUTE, 100).multiplier == pytest.approx(multiplier)


def test_the_limits_of_a_queue_in_order_are_those_of_the_seed() -> None:
    limits = adaptive_limits(queue_health(50, MINUTE, 100), 100)
    assert limits == {"high": 150, "normal": 100, "low": 50, "throttled": 10}


@given(queued, waits, most)
def test_every_lane_has_at_least_one_and_a_better_lane_never_less(queued: int, wait: timedelta, most: int) -> None:
    health = queue_health(queued, wait, most)
    assert 0.1 <= health.multiplier <= 2.0
    limits = list(adaptive_limits(health, most).values())
    assert limits == sorted(limits, reverse=True)
    assert limits[-1] >= 1


@given(queued, queued, waits, waits, most)
def test_a_longer_or_older_queue_never_raises_a_limit(
    one: int, other: int, wait: timedelta, more: timedelta, most: int
) -> None:
    better = adaptive_limits(queue_health(min(one, other), wait, most), most)
    worse = adaptive_limits(queue_health(max(one, other), wait + more, most), most)
    assert all(worse[lane] <= better[lane] for lane in LANES)
