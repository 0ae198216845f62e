"""What an error says: its message, and nothing else it carries."""

from datetime import UTC, datetime, timedelta

import pytest

from postroom.core.errors import (
    BadInput,
    BudgetSpent,
    IntakeRefused,
    ModelUnavailable,
    Parked,
    PostroomError,
    Retryable,
)

A_MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (BadInput("email", "is empty", "write one"), "email: is empty; write one"),
        (IntakeRefused("the disk is nearly full", A_MINUTE), "the disk is nearly full"),
        (ModelUnavailable("it is not reached", A_MINUTE), "it is not reached"),
        (BudgetSpent("the day's share is used", datetime(2026, 11, 15, tzinfo=UTC)), "the day's share is used"),
        (Retryable("not now", A_MINUTE), "not now"),
        (Parked("pause:all", "Postroom is paused"), "Postroom is paused"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_says_its_message_alone(error: PostroomError, said: str) -> None:
    assert str(error) == said
