"""How long a mail server is left alone after an error."""

from datetime import timedelta
from random import Random

from postroom.mailboxes.imap.errors import (
    BUSY_FOR,
    Busy,
    ImapSignInRefused,
    NotSecure,
    ServerFailed,
    Unreachable,
    refusal,
    sign_in_refusal,
)
from postroom.mailboxes.imap.following.backoff import LONGEST, LONGEST_WITHOUT_PERSON, SPREAD, pause_after

FIRST = timedelta(seconds=30)


class NoSpread(Random):
    def random(self) -> float:
        return 0.0


def pauses(error: Exception, count: int = 30) -> list[timedelta]:
    return [pause_after(error, failures, FIRST, NoSpread()) for failures in range(1, count)]


def test_pauses_grow_up_to_a_limit() -> None:
    for error in (Unreachable("mail.example", "gone"), ServerFailed("NOOP", "UNAVAILABLE")):
        found = pauses(error)
        assert found[:3] == [FIRST, 2 * FIRST, 4 * FIRST]
        assert found[-1] == LONGEST
        assert found == sorted(found)


def test_a_server_that_asks_for_a_pause_gets_it_and_a_longer_one_each_time() -> None:
    found = pauses(Busy("SELECT", "LIMIT"))
    assert found[:2] == [BUSY_FOR, 2 * BUSY_FOR]
    assert found[-1] == LONGEST_WITHOUT_PERSON


def test_a_refused_password_is_tried_ever_more_rarely() -> None:
    assert pauses(ImapSignInRefused("mail.example", "AUTHENTICATIONFAILED"))[-1] == LONGEST_WITHOUT_PERSON


def test_a_certificate_is_looked_at_again_soon_since_that_locks_nobody_out() -> None:
    assert pauses(NotSecure("mail.example", "its certificate has expired"))[-1] == LONGEST


def test_accounts_of_one_server_do_not_return_in_the_same_moment() -> None:
    found = {pause_after(Unreachable("x", "gone"), 1, FIRST, Random(seed)) for seed in range(50)}
    assert len(found) == 50
    assert FIRST <= min(found) <= max(found) <= FIRST * (1 + SPREAD)


def test_too_much_of_something_is_a_reason_to_wait_and_a_full_mailbox_is_one_to_act() -> None:
    """Gmail says OVERQUOTA for too many commands, and ALERT with a text for too many connections."""
    for command in ("SELECT", "UID FETCH", "NOOP"):
        assert isinstance(refusal(command, "NO", "OVERQUOTA"), Busy)
    for command in ("APPEND", "UID COPY", "UID MOVE"):
        assert not isinstance(refusal(command, "NO", "OVERQUOTA"), Busy)
    assert isinstance(sign_in_refusal("x", "ALERT", "Too many simultaneous connections. (Failure)"), Busy)
    assert isinstance(sign_in_refusal("x", "ALERT", "Please log in via your web browser"), ImapSignInRefused)
