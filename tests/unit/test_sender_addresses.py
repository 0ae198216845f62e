"""The addresses that a sender may write from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.errors import BadInput
from postroom.core.outbound.sender_addresses import may_send_as
from postroom.operations.outbound.senders import checked_pattern

words = st.text("abcdefghijklmnopqrstuvwxyz0123456789-+_", min_size=1, max_size=20)


@pytest.mark.parametrize(
    ("pattern", "form"),
    [
        ("Ada@Example.COM", "ada@example.com"),
        (" *@example.com ", "*@example.com"),
        ("Ada+*@bücher.example", "ada+*@xn--bcher-kva.example"),
        ('"ada"@example.com', "ada@example.com"),
    ],
)
def test_a_pattern_is_kept_in_one_spelling(pattern: str, form: str) -> None:
    assert checked_pattern(pattern) == form


@pytest.mark.parametrize(
    "pattern",
    ["", "*", "ada", "@example.com", "*@*", "**@example.com", "ada@", "a b@x.example", "*@a,b", '"*"@x.example'],
)
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(BadInput, match="is no address and no pattern"):
        checked_pattern(pattern)


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        ("ada@example.com", True),
        ("ADA@EXAMPLE.COM", True),
        ("ada+shop@example.com", True),
        ("ada+@example.com", True),
        ("bob@example.com", False),
        ("anybody@team.example", True),
        ("ada@sub.example.com", False),
        ("ada@example.com.evil.example", False),
        ("ada@example.com, bob@example.com", False),
        ("not an address", False),
    ],
)
def test_an_address_is_allowed_by_one_of_the_patterns(address: str, allowed: bool) -> None:
    patterns = ["ada@example.com", "ada+*@example.com", "*@team.example"]
    assert may_send_as(patterns, address) == allowed


@given(words, words, words)
def test_a_star_stands_for_anything_before_the_at_and_never_for_another_domain(
    begin: str, middle: str, end: str
) -> None:
    pattern = checked_pattern(f"{begin}*{end}@example.com")
    assert may_send_as([pattern], f"{begin}{middle}{end}@example.com")
    assert not may_send_as([pattern], f"{begin}{middle}{end}@other.example")
    assert not may_send_as([pattern], f"{begin}{middle}{end}@example.com.evil.example")
