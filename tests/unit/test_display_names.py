"""The names beside the addresses of a header."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.mail.addresses import addresses, display_names, names_and_addresses
from support.processor_time import MILLION, within_turns


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("Ida Holm <ida@x.example>", ["Ida Holm"]),
        ('"Holm, Ida"  <ida@x.example>', ["Holm, Ida"]),
        ('"Ida \\"Boss\\" Holm" <ida@x.example>, Uta <uta@x.example>', ['Ida "Boss" Holm', "Uta"]),
        ("ida@x.example (Ida Holm)", ["Ida Holm"]),
        ("ida@x.example", []),
        ("<ida@x.example>", []),
        ('" " <ida@x.example>', []),
        ("=?utf-8?q?=C5=BDofie?= <z@x.example>", ["Žofie"]),
        ("Friends: Ida <ida@x.example>, uta@x.example;", ["Friends", "Ida"]),
        ("undisclosed-recipients:;", ["undisclosed-recipients"]),
        ("ida@evil.example <ida@x.example>", []),
        ("", []),
    ],
)
def test_names_are_found(value: str, names: list[str]) -> None:
    assert display_names(value) == names


@given(st.text(st.sampled_from('ab@.<>"(),;:\\ =?é'), max_size=40))
def test_any_value_is_read(value: str) -> None:
    names = display_names(value)
    assert all(name.strip() for name in names)
    assert {*addresses(value)} <= {text.lower() for text in names_and_addresses(value)} | {*addresses(value)}


@pytest.mark.parametrize(
    "value", ["(" * 60_000, '"' * 60_001, "a " * 30_000, "<" * 60_000, "a@" * 30_000, '"\\' * 30_000]
)
def test_a_hostile_value_takes_linear_time(value: str) -> None:
    within_turns(40 * MILLION, lambda: display_names(value))
