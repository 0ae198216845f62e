"""Counts are plain integers; wrong use of a metric is caught on first use."""

import sys
import threading
from collections.abc import Iterator

import pytest

from postroom.core.metrics import ACCEPT_LATENCY, ACCESS_REFUSED, MESSAGE_DEDUPLICATED, METRICS, QUEUE_DEPTH, Metric
from postroom.core.tally import MOST_SERIES, OVERFLOW, Gauges, Tally


def test_counts_are_kept_by_metric_and_attributes():
    tally = Tally()
    tally.count(MESSAGE_DEDUPLICATED, "email", "key")
    tally.count(MESSAGE_DEDUPLICATED, "email", "key", by=4)
    tally.count(MESSAGE_DEDUPLICATED, "email", "text")
    tally.count(ACCESS_REFUSED, "role")
    assert tally.counts_of(MESSAGE_DEDUPLICATED) == {("email", "key"): 5, ("email", "text"): 1}
    assert tally.counts_of(ACCESS_REFUSED) == {("role",): 1}


def test_a_value_falls_into_the_bucket_of_the_first_bound_that_is_not_below_it():
    tally = Tally()
    bounds = ACCEPT_LATENCY.buckets
    for value in (0.0, bounds[0], bounds[0] * 1.01, bounds[-1], bounds[-1] * 2):
        tally.observe(ACCEPT_LATENCY, value, "email")
    (buckets,) = tally.histograms_of(ACCEPT_LATENCY).values()
    assert buckets.counts == [2, 1, *([0] * (len(bounds) - 3)), 1, 1]
    assert buckets.count == 5
    assert buckets.total == pytest.approx(bounds[0] * 2.01 + bounds[-1] * 3)


@pytest.mark.parametrize("value", [-3600.0, float("nan")])
def test_a_clock_that_was_set_back_does_not_spoil_the_sum(value: float):
    tally = Tally()
    tally.observe(ACCEPT_LATENCY, 0.25, "email")
    tally.observe(ACCEPT_LATENCY, value, "email")
    (buckets,) = tally.histograms_of(ACCEPT_LATENCY).values()
    assert (buckets.count, buckets.total, buckets.counts[0]) == (2, 0.25, 1)


def test_attributes_in_the_wrong_number_are_caught_every_time():
    tally, gauges = Tally(), Gauges()
    for _ in range(2):
        with pytest.raises(TypeError, match="takes queue_name, reason; it was given 1 values"):
            tally.count(MESSAGE_DEDUPLICATED, "email")
        with pytest.raises(TypeError, match="takes queue_name; it was given 2 values"):
            tally.observe(ACCEPT_LATENCY, 1.0, "email", "default")
        with pytest.raises(TypeError, match="takes queue_name, policy_tier, state; it was given 2 values"):
            gauges.show(QUEUE_DEPTH, {("email", "default"): 1})
    assert (tally.counts, tally.histograms, gauges.values_of(QUEUE_DEPTH)) == ({}, {}, {})


def test_a_metric_of_another_kind_is_caught():
    tally, gauges = Tally(), Gauges()
    with pytest.raises(TypeError, match="is a gauge, not a counter"):
        tally.count(QUEUE_DEPTH, "email", "default", "waiting")
    with pytest.raises(TypeError, match="is a counter, not a histogram"):
        tally.observe(ACCESS_REFUSED, 1.0, "role")
    with pytest.raises(TypeError, match="is a histogram, not a gauge"):
        gauges.show(ACCEPT_LATENCY, {("email",): 1})


def test_attributes_without_bound_do_not_fill_the_memory():
    tally = Tally()
    for number in range(MOST_SERIES + 500):
        tally.count(ACCESS_REFUSED, f"reason {number}")
        tally.observe(ACCEPT_LATENCY, 1.0, f"queue {number}")
    tally.count(ACCESS_REFUSED, "reason 7")
    counts, histograms = tally.counts_of(ACCESS_REFUSED), tally.histograms_of(ACCEPT_LATENCY)
    assert (len(counts), len(histograms)) == (MOST_SERIES + 1, MOST_SERIES + 1)
    assert (counts["reason 7",], counts[OVERFLOW,], histograms[OVERFLOW,].count) == (2, 500, 500)


def test_a_gauge_shows_what_there_is_now_and_nothing_that_was():
    gauges = Gauges()
    gauges.show(QUEUE_DEPTH, {("email", "default", "waiting"): 3, ("email", "default", "leased"): 1})
    gauges.show(QUEUE_DEPTH, {("email", "default", "waiting"): 2})
    assert gauges.values_of(QUEUE_DEPTH) == {("email", "default", "waiting"): 2}


@pytest.fixture
def restless_threads() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("restless_threads")
def test_a_thread_may_read_while_the_event_loop_counts():
    tally, done, errors = Tally(), threading.Event(), list[Exception]()

    def read() -> None:
        try:
            while not done.is_set():
                tally.counts_of(ACCESS_REFUSED)
                tally.histograms_of(ACCEPT_LATENCY)
        except Exception as error:
            errors.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(20_000):
        tally.count(ACCESS_REFUSED, f"reason {number % MOST_SERIES}")
        tally.observe(ACCEPT_LATENCY, 1.0, f"queue {number % MOST_SERIES}")
        if number % MOST_SERIES == 0:
            tally.counts.clear()
            tally.histograms.clear()
            tally._series.clear()
    done.set()
    reader.join()
    assert errors == []


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_metric_is_declared_soundly(metric: Metric):
    assert [each for each in METRICS if each.name == metric.name] == [metric]
    assert metric.description.endswith(".")
    assert metric.unit in ("s", "ms", "By") or metric.unit.startswith("{")
    assert list(metric.buckets) == sorted(set(metric.buckets))
    assert bool(metric.buckets) == (metric.kind == "histogram")
    assert all(len(values) == len(metric.attributes) for values in metric.known)
    assert metric.kind == "counter" or not metric.known
