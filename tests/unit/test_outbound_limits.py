"""Daily limits, and the stages of the fair queue."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.errors import NotAdmitted
from postroom.core.outbound.limits import DailyLimits, day_of, limit_reached, next_day
from postroom.core.outbound.rollout import Rollout

NOW = datetime(2026, 11, 16, 23, 30, tzinfo=UTC)
zones = st.integers(-14, 14).map(lambda hours: timezone(timedelta(hours=hours)))
moments = st.builds(datetime.fromtimestamp, st.floats(946_684_800, 4_102_444_800), zones)


def test_a_day_is_one_of_utc_wherever_the_clock_is() -> None:
    assert day_of(NOW.astimezone(timezone(timedelta(hours=9)))) == "2026-11-16"
    assert next_day(NOW) == datetime(2026, 11, 17, tzinfo=UTC)


@given(moments)
def test_the_next_day_begins_within_a_day_and_is_another_day(moment: datetime) -> None:
    following = next_day(moment)
    assert timedelta(0) < following - moment <= timedelta(days=1)
    assert day_of(following) > day_of(moment) == day_of(following - timedelta(microseconds=1))


def test_the_usual_limits_are_300_for_a_sender_and_none_for_a_domain() -> None:
    assert DailyLimits() == (300, None)


def test_who_has_reached_a_limit_is_told_which_and_until_when() -> None:
    error = limit_reached("ada@example.com", 300, NOW)
    assert isinstance(error, NotAdmitted)
    assert error.until == next_day(NOW)
    assert str(error) == (
        "ada@example.com has reached the daily limit of 300 messages; try again after 2026-11-17 00:00 UTC"
    )


# the stages


@pytest.mark.parametrize(
    ("stage", "fair", "measured"),
    [("off", False, False), ("measure", False, True), ("all", True, True)],
)
def test_a_stage_is_the_same_for_every_tenant(stage: str, fair: bool, measured: bool) -> None:
    rollout = Rollout(stage, 0.5)  # type: ignore[arg-type]
    assert {rollout.is_fair(f"tenant-{number}") for number in range(50)} == {fair}
    assert rollout.is_measured == measured


@given(st.text(), st.floats(0, 1), st.floats(0, 1))
def test_a_larger_share_keeps_the_tenants_of_a_smaller_one(tenant: str, one: float, other: float) -> None:
    smaller, larger = sorted((one, other))
    assert Rollout("share", larger).is_fair(tenant) >= Rollout("share", smaller).is_fair(tenant)
    assert Rollout("share", 1.0).is_fair(tenant)
    assert not Rollout("share", 0.0).is_fair(tenant)


def test_a_share_of_the_tenants_is_about_that_many() -> None:
    chosen = sum(Rollout("share", 0.25).is_fair(f"tenant-{number}.example") for number in range(4000))
    assert 900 <= chosen <= 1100
