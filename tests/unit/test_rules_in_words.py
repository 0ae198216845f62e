"""Conditions in words: every one has its own, and nothing that is stored makes them fail or run on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.rules.conditions import SPECS
from postroom.core.rules.in_words import conditions_in_words
from support.rule_strategies import trees


@pytest.mark.parametrize("kind", sorted(SPECS))
def test_every_condition_has_words(kind: str) -> None:
    arguments = ("x", True, {"name": "X-Odd", "pattern": "^a"})
    assert any(conditions_in_words({kind: each}) != f"{kind} {each}" for each in arguments)


def test_conditions_read_as_a_sentence() -> None:
    conditions = {"and": [{"from": "@shop.example"}, {"not": {"or": [{"subject_words": "refund"}, {"to_me": False}]}}]}
    assert conditions_in_words(conditions) == (
        "it is from @shop.example and not (the subject has the words “refund” or it is not to me)"
    )


@given(
    trees()
    | st.recursive(
        st.none() | st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_whatever_is_stored_has_words(conditions: object) -> None:
    assert conditions_in_words(conditions)


def test_many_conditions_are_cut_short() -> None:
    many = {"or": [{"sender_domain": f"x{number}.example"} for number in range(1_000)]}
    said = conditions_in_words(many)
    assert said.endswith("or 992 more")
    assert len(said) < 1_000
