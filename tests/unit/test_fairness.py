"""Gini, Jain and the largest share: their bounds, and the textbook's formulas."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.outbound.fairness import Service, evenness, gini, jain, largest_share

parts = st.lists(st.floats(0, 1e12, allow_subnormal=False), max_size=30)
some = st.lists(st.floats(0.001, 1e9), min_size=1, max_size=30)


def naive_gini(values: list[float]) -> float:
    """Half the mean difference of all pairs, by the mean."""
    total = sum(values)
    pairs = sum(abs(one - other) for one, other in product(values, repeat=2))
    return pairs / (2 * len(values) * total) if total else 0.0


def naive_jain(values: list[float]) -> float:
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0


@given(parts)
def test_they_stay_between_0_and_1(values: list[float]):
    assert 0 <= gini(values) <= 1
    assert 0 <= jain(values) <= 1
    assert 0 <= largest_share(values) <= 1


@given(some)
def test_they_are_those_of_the_textbook(values: list[float]):
    assert gini(values) == pytest.approx(naive_gini(values), abs=1e-9)
    assert jain(values) == pytest.approx(naive_jain(values), rel=1e-9)
    assert largest_share(values) == pytest.approx(max(values) / sum(values), rel=1e-9)


@given(st.floats(1e-6, 1e9), st.integers(1, 50))
def test_equal_service_is_equal(value: float, count: int):
    assert gini([value] * count) == pytest.approx(0, abs=1e-12)
    assert jain([value] * count) == pytest.approx(1)
    assert largest_share([value] * count) == pytest.approx(1 / count)


@given(some, st.floats(1e-3, 1e3))
def test_only_proportions_matter(values: list[float], factor: float):
    scaled = [value * factor for value in values]
    assert gini(scaled) == pytest.approx(gini(values), abs=1e-9)
    assert jain(scaled) == pytest.approx(jain(values), rel=1e-9)


@pytest.mark.parametrize("count", [2, 10, 1000])
def test_one_who_gets_everything_is_as_unfair_as_can_be(count: int):
    values = [7.0] + [0.0] * (count - 1)
    assert gini(values) == pytest.approx(1 - 1 / count)
    assert jain(values) == pytest.approx(1 / count)
    assert largest_share(values) == 1


@given(st.lists(st.floats(0.1, 100), min_size=1, max_size=20))
def test_service_in_proportion_to_the_weights_is_equal(weights: list[float]):
    found = evenness(Service(10 * weight, weight) for weight in weights)
    assert (found.gini, found.jain) == (pytest.approx(0, abs=1e-9), pytest.approx(1))
    assert found.largest_share == pytest.approx(max(weights) / sum(weights))


def test_those_without_service_are_not_members():
    found = evenness([Service(5), Service(0), Service(5)])
    assert (found.members, found.gini, found.jain, found.largest_share) == (2, 0, 1, 0.5)


def test_without_any_service_nobody_is_treated_worse():
    found = evenness([])
    assert (found.members, found.gini, found.jain, found.largest_share) == (0, 0, 1, 0)
