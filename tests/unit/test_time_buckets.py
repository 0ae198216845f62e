"""Times in buckets: every time is in its own, sums of buckets are buckets of sums, percentiles are close."""

from datetime import timedelta
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.outbound.time_buckets import TimeBuckets, bounds_us, bucket_of, microseconds

WEEK_US = 7 * 86_400 * 10**6
times = st.integers(0, WEEK_US)


@given(times)
def test_a_time_lies_within_its_bucket(time_us: int):
    low, high = bounds_us(bucket_of(time_us))
    assert low <= time_us < high
    assert time_us < 1 or high <= 1.25 * low


@given(times, times)
def test_a_longer_time_is_in_no_earlier_bucket(one: int, other: int):
    assert (one <= other) <= (bucket_of(one) <= bucket_of(other))


@given(st.lists(times, min_size=1, max_size=60), st.sampled_from([0.5, 0.95, 0.99, 1.0]))
def test_a_percentile_is_off_by_a_quarter_at_most(values: list[int], share: float):
    buckets = TimeBuckets()
    for value in values:
        buckets.add(value)
    exact = sorted(values)[max(0, ceil(share * len(values) - 1e-9) - 1)]
    assert exact / 1.25 - 1 <= buckets.percentile_us(share) <= exact * 1.25 + 1


@given(st.lists(times, max_size=30), st.lists(times, max_size=30))
def test_adding_up_is_counting_together(one: list[int], other: list[int]):
    parts = [TimeBuckets(), TimeBuckets()]
    whole = TimeBuckets()
    for part, values in zip(parts, (one, other), strict=True):
        for value in values:
            part.add(value)
            whole.add(value)
    parts[0].merge(parts[1])
    assert parts[0].spread() == whole.spread()


def test_the_mean_is_exact():
    buckets = TimeBuckets()
    buckets.add(1_000_000, 3)
    buckets.add(5_000_000)
    spread = buckets.spread()
    assert spread is not None
    assert (spread.count, spread.mean_s) == (4, 2.0)


def test_nothing_counted_has_no_spread():
    assert TimeBuckets().spread() is None


@pytest.mark.parametrize("back", [timedelta(seconds=-1), timedelta(microseconds=-1), timedelta(0)])
def test_a_clock_that_was_set_back_counts_as_no_time(back: timedelta):
    assert bucket_of(microseconds(back)) == 0
