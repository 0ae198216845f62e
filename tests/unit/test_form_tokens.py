"""The form token in answers: under a new mask in each, and accepted under any."""

from dataclasses import replace

from postroom.core import base64url
from postroom.interfaces.dashboard.visiting import OWNER
from postroom.operations.people.form_tokens import is_form_token, masked_form_token


def test_each_answer_has_another_text_that_is_the_same_token() -> None:
    masked = {masked_form_token(OWNER) for _ in range(100)}
    assert len(masked) == 100
    assert all(is_form_token(each, OWNER) for each in masked)
    assert not any(OWNER.form_token in each for each in masked)
    # No letter is always the same, so none can be guessed by the size of compressed answers.
    assert all(len(set(letters)) > 1 for letters in zip(*masked, strict=True))


def test_what_is_not_the_token_under_a_mask_is_refused() -> None:
    own, other = OWNER.form_token, masked_form_token(replace(OWNER, form_token="x" * 32))
    masked = masked_form_token(OWNER)
    for given in (
        *("", "a", "====", "ä", "\0" * 86, own, own * 2),
        *(masked[:-4], masked + "AAAA", other, base64url.encode(bytes(64))),
    ):
        assert not is_form_token(given, OWNER), given
