"""Everything that can go wrong between us and Gmail, as one branch of the error tree.

    PostroomError
    └── GmailError
        ├── Unauthorized        401: the access token is not accepted
        ├── RateLimited         429, or 403 for a quota reason; carries Google's own waiting time
        ├── Forbidden           403 for a reason that no new consent cures
        │   └── MissingScope        any other 403; names the scope that the user has not granted
        ├── MessageNotFound     404 for a message
        ├── HistoryExpired      404 for history.list; the caller answers with a full resync
        ├── LabelNotFound       no label has this name
        ├── Refused             any other 4xx
        │   └── LabelExists         409 for labels.create
        ├── ServerError         5xx, and 408
        ├── Unreachable         no answer came
        └── BadAnswer           an answer came that is not Gmail's

No message quotes an access token, a header we sent, or anything out of a mail. Google's own error text may quote what
it was sent, so only its `reason`, one word, is kept.
"""

from datetime import timedelta

from postroom.core.errors import Fatal, JobError, PostroomError, Retryable


class GmailError(PostroomError):
    """The root of all errors of the Gmail client."""


class Unauthorized(GmailError):
    """Gmail did not accept the access token."""

    def __init__(self, call: str) -> None:
        super().__init__(
            f"{call}: Gmail did not accept the access token (401); a new one is fetched for the next try, "
            "and if this goes on, connect the account again"
        )


class RateLimited(GmailError):
    """Too much was asked of Gmail in too short a time. `retry_after` is Google's own waiting time, when it gave one."""

    def __init__(self, call: str, reason: str, retry_after: timedelta | None = None) -> None:
        wait = "later" if retry_after is None else f"in {retry_after.total_seconds():.0f} s"
        super().__init__(
            f"{call}: Gmail's rate limit is reached ({reason}); it is tried again {wait}, "
            "and if this happens often, lower the account's quota settings"
        )
        self.reason = reason
        self.retry_after = retry_after


class Forbidden(GmailError):
    """Gmail does not allow this, whatever the user consents to."""

    def __init__(self, call: str, reason: str, remedy: str) -> None:
        super().__init__(f"{call}: Gmail does not allow it (403 {reason}); {remedy}")
        self.reason = reason


class MissingScope(Forbidden):
    """The user has not granted the scope that this call needs."""

    def __init__(self, call: str, reason: str, scope: str) -> None:
        super().__init__(call, reason, f"connect the account again and grant the scope {scope}")
        self.scope = scope


class MessageNotFound(GmailError):
    """The message is no longer in the mailbox."""

    def __init__(self, message_id: str) -> None:
        super().__init__(
            f"message {message_id} is not in the mailbox (404): it was deleted there, so nothing can be done with it; "
            "dismiss what still refers to it"
        )
        self.message_id = message_id


class HistoryExpired(GmailError):
    """Gmail no longer knows the changes since this point; only a full resync tells what the mailbox holds now."""

    def __init__(self, start_history_id: int) -> None:
        super().__init__(f"Gmail no longer has the history since {start_history_id} (404); sync the mailbox anew")
        self.start_history_id = start_history_id


class LabelNotFound(GmailError):
    """No label of the mailbox has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the mailbox has no label {name!r}; create it in Gmail or correct the name")
        self.name = name


class Refused(GmailError):
    """Gmail understood the request and does not accept it."""

    def __init__(self, call: str, status: int, reason: str, remedy: str) -> None:
        super().__init__(f"{call}: Gmail refused the request ({status} {reason}); {remedy}")
        self.status = status
        self.reason = reason


class LabelExists(Refused):
    """A label of this name, or one that conflicts with it, is already there."""


class ServerError(GmailError):
    """Gmail failed on its own side."""

    def __init__(self, call: str, status: int, retry_after: timedelta | None = None) -> None:
        super().__init__(
            f"{call}: Gmail failed on its own side ({status}); it is tried again, "
            "and if this goes on, look at Google's status dashboard"
        )
        self.status = status
        self.retry_after = retry_after


class Unreachable(GmailError):
    """No answer came from Gmail."""

    def __init__(self, call: str, failure: str) -> None:
        super().__init__(
            f"{call}: no answer from Gmail ({failure}); it is tried again, "
            "and if this goes on, check the network connection and the API address"
        )


class BadAnswer(GmailError):
    """The answer is not one that Gmail gives."""

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"an answer of Gmail could not be read: {problem}; "
            "check that the API address is Google's and that no proxy answers in its place"
        )


def job_error(context: str, error: GmailError) -> JobError:
    """How a job ends after `error`.

    An expired history is neither fatal nor cured by trying again: it is raised, for the sync to start anew.
    """
    message = f"{context}: {error}"
    match error:
        case HistoryExpired():
            raise error
        case RateLimited() | ServerError():
            return Retryable(message, after=error.retry_after)
        case Unauthorized() | Unreachable():
            return Retryable(message)
        case _:
            return Fatal(message)
