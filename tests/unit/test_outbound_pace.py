"""The sender's timing: how long it waits, and what counts as a refusal."""

from datetime import timedelta

import pytest

from postroom.core.errors import Retryable
from postroom.mailboxes.gmail.errors import Forbidden, GmailRefused, RateLimited, ServerError, Unreachable
from postroom.outbound.queue.pace import Pace, asked_to_wait, is_refusal, wait_after


def test_waits_double_from_a_minute_to_four_hours() -> None:
    waits = [wait_after(attempts, Pace()) / timedelta(minutes=1) for attempts in range(1, 12)]
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 240, 240, 240]


def test_a_server_that_asks_for_more_time_gets_it() -> None:
    hour = timedelta(hours=1)
    assert wait_after(1, Pace(), hour) == hour
    assert asked_to_wait(RateLimited("drafts.send", "quota", hour)) == hour
    assert asked_to_wait(Retryable("later", hour)) == hour
    assert asked_to_wait(Unreachable("drafts.send", "reset")) is None


@pytest.mark.parametrize(
    ("error", "refused"),
    [
        (GmailRefused("drafts.send", 400, "invalidArgument", "look"), True),
        (Forbidden("drafts.send", "domainPolicy", "ask"), False),
        (ServerError("drafts.send", 503), False),
        (Unreachable("drafts.send", "reset"), False),
    ],
)
def test_only_a_mail_that_is_not_accepted_is_refused(error: Exception, refused: bool) -> None:
    assert is_refusal(error) == refused
