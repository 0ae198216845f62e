"""Account names: one spelling of an address, and one name of its mailbox."""

import pytest

from postroom.core.errors import BadInput
from postroom.core.mail.accounts import normalised_address, same_mailbox


def test_an_address_is_kept_in_one_spelling() -> None:
    assert normalised_address(" Ada@Example.COM ") == "ada@example.com"


def test_an_address_of_320_characters_is_the_longest() -> None:
    longest = "a" * 308 + "@example.com"
    assert normalised_address(longest) == longest
    with pytest.raises(BadInput):
        normalised_address(f"a{longest}")


@pytest.mark.parametrize(
    "address", ["", "ada", "ada@", "@example.com", "a b@example.com", "a@b@c", "a\u200b@x.example"]
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(BadInput, match="not a mail address"):
        normalised_address(address)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("a.da@gmail.com", "Ada@googlemail.com", True),
        ("a.da@example.com", "ada@example.com", False),
        ("ada@example.com", "ADA@example.com", True),
        ("ada@gmail.com", "ada@example.com", False),
        ("no address", " No Address ", True),
        ("no address", "another one", False),
    ],
)
def test_two_addresses_of_one_mailbox_are_the_same(one: str, other: str, same: bool) -> None:
    assert same_mailbox(one, other) == same
