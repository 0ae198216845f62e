"""How a job ends after an error of Gmail."""

from datetime import timedelta

import pytest

from postroom.core.errors import Fatal, PostroomError, Retryable
from postroom.gmail.errors import (
    BadAnswer,
    Forbidden,
    GmailError,
    HistoryExpired,
    LabelNotFound,
    MessageNotFound,
    RateLimited,
    Refused,
    ScopeMissing,
    ServerError,
    Unauthorized,
    Unreachable,
    job_error,
)

SCOPE = "https://www.googleapis.com/auth/gmail.modify"
FATAL: list[GmailError] = [
    MessageNotFound("18c2"),
    ScopeMissing("messages.modify", "insufficientPermissions", SCOPE),
    Forbidden("messages.modify", "domainPolicy", "ask the administrator"),
    Refused("messages.modify", 400, "invalidArgument", "check the values"),
    LabelNotFound("Work"),
    BadAnswer("it is not a JSON object"),
]
RETRYABLE: list[GmailError] = [
    Unauthorized("messages.get"),
    RateLimited("messages.get", "rateLimitExceeded"),
    ServerError("messages.get", 503),
    Unreachable("messages.get", "ConnectError"),
]


def named(error: GmailError) -> str:
    return type(error).__name__


@pytest.mark.parametrize("error", FATAL, ids=named)
def test_what_no_second_try_cures_is_fatal(error: GmailError) -> None:
    assert type(job_error("archive", error)) is Fatal


@pytest.mark.parametrize("error", RETRYABLE, ids=named)
def test_what_may_pass_is_tried_again(error: GmailError) -> None:
    assert type(job_error("archive", error)) is Retryable


@pytest.mark.parametrize("wait", [timedelta(seconds=30), None])
def test_a_job_waits_as_long_as_google_asks(wait: timedelta | None) -> None:
    limited = job_error("archive", RateLimited("messages.get", "rateLimitExceeded", wait))
    failing = job_error("archive", ServerError("messages.get", 503, wait))
    assert isinstance(limited, Retryable)
    assert isinstance(failing, Retryable)
    assert (limited.after, failing.after) == (wait, wait)


def test_an_expired_history_is_left_to_the_sync() -> None:
    expired = HistoryExpired(12)
    with pytest.raises(HistoryExpired) as caught:
        job_error("history.sync.gmail", expired)
    assert caught.value is expired


@pytest.mark.parametrize("error", [*FATAL, *RETRYABLE], ids=named)
def test_the_end_of_a_job_says_what_was_done_and_what_helps(error: GmailError) -> None:
    message = str(job_error("archive message 18c2", error))
    assert message.startswith("archive message 18c2: ")
    assert ";" in message


def test_every_error_of_the_client_is_in_the_one_tree() -> None:
    kinds = GmailError.__subclasses__()
    assert issubclass(GmailError, PostroomError)
    assert {kind.__name__ for kind in kinds} == {
        "BadAnswer", "Forbidden", "HistoryExpired", "LabelNotFound", "MessageNotFound", "RateLimited", "Refused",
        "ServerError", "Unauthorized", "Unreachable",
    }  # fmt: skip
