"""The rate that the switchboard enforces: whoever keeps it is never held, and nobody gets far beyond it."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from postroom.core.backfill.job import HIGHEST_RATE
from postroom.core.backfill.rate import HOUR, allowed, due_from, slack, spacing, too_early
from postroom.mailboxes.backfill.pace import Pace

START = datetime(2026, 11, 16, tzinfo=UTC)
rates = st.sampled_from([1, 7, 100, 3_600, 20_000, HIGHEST_RATE])
pauses = st.lists(st.floats(0, 100, allow_nan=False), max_size=60)


@given(rates, pauses)
def test_a_connector_that_keeps_its_pace_is_never_held(per_hour: int, pauses: list[float]) -> None:
    """It reads in batches, and reports after a pause of any length."""
    seconds, due, reported = 0.0, None, START
    pace = Pace(per_hour, lambda: seconds)
    for pause in pauses:
        seconds += pace.wait_s()
        pace.take(pace.at_once)
        seconds += pause
        now = START + timedelta(seconds=seconds)
        due = due_from(due, reported, per_hour, now)
        assert not too_early(due, pace.at_once, per_hour, now)
        due, reported = due + pace.at_once * spacing(per_hour), now


@given(rates, st.lists(st.tuples(st.floats(0, 600, allow_nan=False), st.integers(1, 1_000)), max_size=60))
def test_in_no_time_is_more_accepted_than_the_rate_and_the_slack(per_hour: int, tries: list[tuple[float, int]]) -> None:
    now, due, accepted = START, None, 0
    for pause, count in tries:
        now += timedelta(seconds=pause)
        due = due_from(due, now, per_hour, now)
        taken = min(count, allowed(due, per_hour, now))
        due, accepted = due + taken * spacing(per_hour), accepted + taken
    assert accepted <= (now - START + slack(per_hour)) / spacing(per_hour) + 1


@given(rates, st.integers(1, 1_000))
def test_after_the_wait_that_is_told_they_are_allowed(per_hour: int, count: int) -> None:
    count = min(count, slack(per_hour) // spacing(per_hour))
    due = START + slack(per_hour)
    wait = too_early(due, count, per_hour, START)
    assert wait == count * spacing(per_hour)
    later = START + wait
    assert allowed(due, per_hour, later) >= count


@given(rates, st.timedeltas(timedelta(seconds=1), timedelta(days=400)))
def test_a_clock_that_was_wrong_holds_nothing_up(per_hour: int, ahead: timedelta) -> None:
    now = START
    due = due_from(now + slack(per_hour) + ahead, now, per_hour, now)
    assert due == now
    assert allowed(due, per_hour, now) >= 100
    assert slack(per_hour) <= 100 * HOUR
