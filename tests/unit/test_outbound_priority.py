"""The lane of a sender: from the plan, the age and a throttle."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.outbound.priority import (
    NEW_FOR,
    PLANS,
    Priority,
    Throttle,
    calculate_priority,
    lane_of,
)

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
OLD = NOW - timedelta(days=30)
ages = st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=3650))
plans = st.sampled_from([*PLANS, "an older plan"])
ends = st.timedeltas(timedelta(days=-2), timedelta(days=2)).map(lambda ahead: NOW + ahead)
throttles = st.none() | st.builds(Throttle, ends, st.just("bounces"))


@pytest.mark.parametrize(
    ("plan", "lane"),
    [
        ("team", "high"),
        ("enhanced_protection", "high"),
        ("free", "low"),
        ("standard", "normal"),
        ("an older plan", "normal"),
    ],
)
def test_the_plan_of_an_old_sender_says_the_lane(plan: str, lane: str) -> None:
    assert lane_of(plan, OLD, None, NOW) == lane


@pytest.mark.parametrize("plan", PLANS)
def test_a_sender_is_low_in_the_first_seven_days_whatever_is_paid(plan: str) -> None:
    assert lane_of(plan, NOW - NEW_FOR + timedelta(microseconds=1), None, NOW) == "low"
    assert calculate_priority(plan, NOW - NEW_FOR, None, NOW) == PLANS[plan]


@given(plans, ages, ages)
def test_a_throttle_comes_before_plan_and_age_until_it_is_taken_away(plan: str, age: timedelta, ago: timedelta) -> None:
    over = Throttle(NOW - ago, "bounces")
    assert lane_of(plan, NOW - age, over, NOW) == "throttled"
    assert not over.is_in_force(NOW)
    assert Throttle(NOW + timedelta(seconds=1), "bounces").is_in_force(NOW)


@given(plans, ages, throttles)
def test_every_sender_has_one_of_the_four_priorities_and_the_lane_of_its_name(
    plan: str, age: timedelta, throttle: Throttle | None
) -> None:
    priority = calculate_priority(plan, NOW - age, throttle, NOW)
    assert lane_of(plan, NOW - age, throttle, NOW) == priority.name.lower()
    assert (priority == Priority.THROTTLED) == (throttle is not None)
    assert [int(each) for each in Priority] == [2, 1, 0, -1]


@given(plans, ages, ages)
def test_without_a_throttle_a_sender_is_never_worse_off_for_being_older(
    plan: str, age: timedelta, more: timedelta
) -> None:
    older = calculate_priority(plan, NOW - age - more, None, NOW)
    assert older >= calculate_priority(plan, NOW - age, None, NOW)
