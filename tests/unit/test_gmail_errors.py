"""How a job ends after a Gmail error."""

import re
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from postroom.core.errors import Fatal, Parked, PostroomError, Retryable
from postroom.core.mail.accounts import parking_key
from postroom.core.mail.mailbox import job_error_of
from postroom.mailboxes.gmail import errors
from postroom.mailboxes.gmail.errors import (
    AnswerTooLarge,
    BadAnswer,
    ConsentLost,
    DraftNotFound,
    EndlessPages,
    Forbidden,
    GmailError,
    GmailRefused,
    GmailTokenUnavailable,
    HistoryExpired,
    LabelExists,
    LabelNotFound,
    MessageNotFound,
    NotFromGmail,
    QuotaExhausted,
    RateLimited,
    ScopeMissing,
    ServerError,
    ThreadNotFound,
    Unauthorized,
    Unreachable,
)
from postroom.mailboxes.gmail.scopes import COMPOSE, FULL, LABELS, MODIFY, READONLY, SEND

SCOPE = "https://www.googleapis.com/auth/gmail.modify"
FATAL: list[GmailError] = [
    MessageNotFound("18c2"),
    ScopeMissing("messages.modify", "insufficientPermissions", SCOPE),
    Forbidden("messages.modify", "domainPolicy", "ask the administrator"),
    GmailRefused("messages.modify", 400, "invalidArgument", "check the values"),
    LabelNotFound("Work"),
    BadAnswer("its field id is missing"),
    AnswerTooLarge("messages.get", 1 << 20),
    EndlessPages("more than 3 pages came"),
    DraftNotFound("r1"),
    ThreadNotFound("18c2"),
    LabelExists("labels.create", 409, "aborted", "choose another name"),
]
RETRYABLE: list[GmailError] = [
    ConsentLost("mara@lindqvist.example"),
    Unauthorized("messages.get"),
    RateLimited("messages.get", "rateLimitExceeded"),
    ServerError("messages.get", 503),
    Unreachable("messages.get", "ConnectError"),
    QuotaExhausted("messages.get", "dailyLimitExceeded"),
    GmailTokenUnavailable("Google answered 503"),
    NotFromGmail("it is not a JSON object"),
]


def named(error: GmailError) -> str:
    return type(error).__name__


@pytest.mark.parametrize("error", FATAL, ids=named)
def test_what_no_second_try_cures_is_fatal(error: GmailError) -> None:
    assert type(job_error_of(error, "archive")) is Fatal


@pytest.mark.parametrize("error", RETRYABLE, ids=named)
def test_what_may_pass_is_tried_again(error: GmailError) -> None:
    assert type(job_error_of(error, "archive")) is Retryable


@pytest.mark.parametrize("wait", [timedelta(seconds=30), None])
def test_a_job_waits_as_long_as_google_asks(wait: timedelta | None) -> None:
    limited = job_error_of(RateLimited("messages.get", "rateLimitExceeded", wait), "archive")
    failing = job_error_of(ServerError("messages.get", 503, wait), "archive")
    assert isinstance(limited, Retryable)
    assert isinstance(failing, Retryable)
    assert (limited.after, failing.after) == (wait, wait)


def test_an_expired_history_that_no_sync_caught_is_tried_again() -> None:
    assert type(job_error_of(HistoryExpired(12), "history.sync.gmail")) is Retryable


@pytest.mark.parametrize("error", [*FATAL, *RETRYABLE], ids=named)
def test_the_end_of_a_job_says_what_was_done_and_what_helps(error: GmailError) -> None:
    message = str(job_error_of(error, "archive message 18c2"))
    assert message.startswith("archive message 18c2: ")
    assert ";" in message


def every_kind(root: type[GmailError] = GmailError) -> set[str]:
    """The names of all errors of the client's; those of a consent's beginning are told elsewhere."""
    below = [kind for kind in root.__subclasses__() if kind.__module__ == errors.__name__]
    return {name for kind in below for name in {kind.__name__, *every_kind(kind)}}


def test_every_error_of_the_client_is_in_the_one_tree() -> None:
    drawn = set(re.findall(r"[├└]── (\w+)", errors.__doc__ or "")) - {"GmailError"}
    assert issubclass(GmailError, PostroomError)
    assert every_kind() == drawn


def test_every_error_is_explained_in_the_reference() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "gmail-errors.md").read_text("utf-8")
    explained = {
        name for row in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    }
    assert every_kind() <= explained


def test_a_lost_consent_parks_the_job_until_the_account_is_connected_again() -> None:
    account_id = uuid4()
    parked = job_error_of(ConsentLost("mara@lindqvist.example"), account_id=account_id)
    assert isinstance(parked, Parked)
    assert parked.key == parking_key(account_id)
    assert "postroom account add gmail" in str(parked)


def test_a_consent_that_died_in_testing_is_reported_in_those_words() -> None:
    assert 'in "Testing"' in str(ConsentLost("mara@lindqvist.example", age=timedelta(days=7, hours=1)))
    assert "Testing" not in str(ConsentLost("mara@lindqvist.example", age=timedelta(days=40)))
    assert "Testing" not in str(ConsentLost("mara@lindqvist.example"))


def test_an_expired_history_never_ends_a_job_for_good() -> None:
    assert isinstance(job_error_of(HistoryExpired(12)), Retryable)


@pytest.mark.parametrize(
    ("scope", "level"),
    [(READONLY, "read"), (MODIFY, "organise"), (LABELS, "organise"), (SEND, "send"), (COMPOSE, "send"), (FULL, "full")],
)
def test_a_missing_scope_comes_with_the_command_that_gets_it(scope: str, level: str) -> None:
    error = ScopeMissing("messages.modify", "insufficientPermissions", scope)
    assert scope in str(error)
    assert f"`postroom account add gmail --level {level}`" in str(error)
