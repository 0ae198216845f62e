"""Replies of the submission server: a code, an enhanced status code (RFC 3463) and one line of text."""

from postroom.core.errors import (
    DatabaseFull,
    IntakeRefused,
    NotAdmitted,
    SenderDisabled,
    StoreError,
    SubmissionRefused,
)

LONGEST_TEXT = 450

LATER = "451 4.3.0 The mail could not be stored; try again later"
FULL = "452 4.3.1 There is no room for mail now; try again later"


def reply_to(error: Exception) -> str:
    """The reply that says why a mail, or its envelope, is not accepted."""
    match error:
        case SubmissionRefused():
            return f"{error.code} {error.status} {one_line(str(error))}"
        case SenderDisabled():
            return f"550 5.7.1 {one_line(str(error))}"
        case NotAdmitted():
            return f"450 4.7.1 {one_line(str(error))}"
        case IntakeRefused() | DatabaseFull():
            return FULL
        case StoreError():
            return LATER
        case _:
            return LATER


def one_line(text: str) -> str:
    """Text that may stand in a reply: ASCII, printable, and not too long."""
    return "".join(each if " " <= each <= "~" else "?" for each in text[:LONGEST_TEXT])
