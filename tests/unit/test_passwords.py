"""Passwords of senders: hashed so that the hash reveals nothing, and long enough."""

import pytest

from postroom.core.errors import BadInput
from postroom.vault.passwords import hash_password, is_password

GOOD = "correct horse battery"


def test_a_password_is_recognised_by_its_hash_and_no_other_is() -> None:
    kept = hash_password(GOOD)
    assert kept.startswith("$argon2id$")
    assert GOOD not in kept
    assert is_password(GOOD, kept)
    assert not is_password(GOOD.upper(), kept)


def test_the_same_password_has_another_hash_each_time() -> None:
    assert hash_password(GOOD) != hash_password(GOOD)


def test_what_is_no_hash_recognises_nothing() -> None:
    assert not is_password(GOOD, "")
    assert not is_password(GOOD, GOOD)


@pytest.mark.parametrize("password", ["", "short", "x" * 11, "x" * 513, "with a line\nbreak", "nul\0" * 4])
def test_a_password_that_is_too_short_too_long_or_cannot_be_typed_is_refused_unquoted(password: str) -> None:
    with pytest.raises(BadInput) as refused:
        hash_password(password)
    assert refused.value.field == "sender"
    assert not password or password not in str(refused.value)
