"""Everything that can go wrong between us and Gmail, as one branch of the error tree.

    PostroomError
    └── GmailError
        ├── Unauthorized        401: the access token is not accepted, not even a new one
        ├── ConsentLost         the user's consent is gone: only the user can give it again
        ├── TokenUnavailable    no access token can be had for now
        ├── RateLimited         429, or 403 for a rate; carries Google's own waiting time
        │   └── QuotaExhausted      the day's or the project's quota is used up: a long wait
        ├── Forbidden           403 for a reason that no new consent cures
        │   └── ScopeMissing        names the scope that the user has not granted, and the level that has it
        ├── NotThere            404
        │   ├── MessageNotFound
        │   ├── DraftNotFound
        │   └── ThreadNotFound
        ├── HistoryExpired      404 for history.list; the caller answers with a full resync
        ├── LabelNotFound       no label has this name, or this id
        ├── Refused             any other 4xx
        │   └── LabelExists         409 for labels.create
        ├── ServerError         5xx, and 408
        ├── Unreachable         no answer came, or not the whole of it
        ├── NoPermit            something was to be changed without a permit: a fault of ours
        ├── Withheld            part of a batch that the gate did not let out
        └── BadAnswer           an answer came that Gmail does not give
            ├── NotFromGmail        not even JSON, or a redirection: something else answers in Gmail's place
            ├── AnswerTooLarge      more bytes than any answer of Gmail has
            ├── NoLabels            a list of labels without any: every mailbox has some
            └── EndlessPages        page tokens that lead in a circle, or never end

No message quotes an access token, a header we sent, or anything out of a mail. Google's own error text may quote what
it was sent, so only its `reason`, one word, is kept.
"""

from datetime import timedelta
from uuid import UUID

from postroom.core.errors import Fatal, MessageGone, Parked, PostroomError, Retryable
from postroom.core.mail.accounts import parking_key
from postroom.gmail.scopes import Consented, level_for, needs_more

# While an app's consent screen is in "Testing", Google ends every consent after seven days.
TESTING_LIFE = timedelta(days=7)


class GmailError(PostroomError):
    """The root of all errors of the Gmail client."""


class NoPermit(GmailError):
    """A call that changes the mailbox was made without a permit, or by a client without a gate."""

    def __init__(self, call: str) -> None:
        super().__init__(f"{call} changes the mailbox, and was asked for without a permit; nothing was sent")


class Withheld(GmailError):
    """The gate did not let this part of a batch out. `why` is what a call alone would raise."""

    def __init__(self, call: str, why: PostroomError) -> None:
        super().__init__(f"{call}: {why}")
        self.why = why


class Unauthorized(GmailError):
    """Gmail did not accept the access token."""

    def __init__(self, call: str) -> None:
        super().__init__(
            f"{call}: Gmail did not accept the access token (401); a new one is fetched for the next try, "
            "and if this goes on, connect the account again"
        )


class ConsentLost(GmailError):
    """The user's consent is gone. `age` is how long it lived, where that is known."""

    def __init__(self, account: str, reason: str = "invalid_grant", age: timedelta | None = None) -> None:
        why = "it was withdrawn, the password was changed, or it was not used for six months"
        if age is not None and TESTING_LIFE <= age < TESTING_LIFE + timedelta(days=1):
            why = (
                'the app is in "Testing", where Google ends every consent after 7 days: publish the app in the '
                "Google Cloud console under OAuth consent screen"
            )
        super().__init__(
            f"Google no longer lets Postroom into {account} ({reason}): {why}; "
            "connect the account again with `postroom account add gmail`, and what waits goes on by itself"
        )
        self.account = account
        self.reason = reason


class TokenUnavailable(GmailError):
    """No access token can be had for now."""

    def __init__(self, problem: str, retry_after: timedelta | None = None) -> None:
        super().__init__(
            f"no access token could be had: {problem}; it is tried again, "
            "and if this goes on, check the network connection and the account with `postroom account list`"
        )
        self.retry_after = retry_after


class RateLimited(GmailError):
    """Too much was asked of Gmail in too short a time. `retry_after` is Google's own waiting time, when it gave one."""

    what = "Gmail's rate limit"
    remedy = "if this happens often, lower the account's quota settings"

    def __init__(self, call: str, reason: str, retry_after: timedelta | None = None) -> None:
        wait = "later" if retry_after is None else f"in {retry_after.total_seconds():.0f} s"
        super().__init__(f"{call}: {self.what} is reached ({reason}); it is tried again {wait}, and {self.remedy}")
        self.reason = reason
        self.retry_after = retry_after


class QuotaExhausted(RateLimited):
    """The quota of the day, or of the whole project, is used up. Hurrying does not help."""

    what = "a quota of Gmail"
    remedy = "if this happens often, look at the project's quotas in the Google Cloud console"


class Forbidden(GmailError):
    """Gmail does not allow this, whatever the user consents to."""

    def __init__(self, call: str, reason: str, remedy: str) -> None:
        super().__init__(f"{call}: Gmail does not allow it (403 {reason}); {remedy}")
        self.reason = reason


class ScopeMissing(Forbidden):
    """The user has not granted the scope that this call needs."""

    def __init__(self, call: str, reason: str, scope: str, consented: Consented | None = None) -> None:
        level = level_for(scope)
        GmailError.__init__(self, needs_more(call, (scope,), consented, level))
        self.call = call
        self.reason = reason
        self.scope = scope
        self.level = level

    def told_of(self, consented: Consented | None) -> "ScopeMissing":
        """The same, with the account and what it has granted, which Google's refusal does not tell."""
        return self if consented is None else ScopeMissing(self.call, self.reason, self.scope, consented)


class NotThere(GmailError):
    """What was named by its id is not in the mailbox."""

    kind = "what was asked for"

    def __init__(self, id: str) -> None:
        super().__init__(
            f"{self.kind} {id} is not in the mailbox (404): it was deleted there, so nothing can be done with it; "
            "dismiss what still refers to it"
        )
        self.id = id


class MessageNotFound(NotThere, MessageGone):
    """The message is no longer in the mailbox."""

    kind = "message"

    @property
    def message_id(self) -> str:
        return self.id


class DraftNotFound(NotThere):
    """The draft was sent or deleted."""

    kind = "draft"


class ThreadNotFound(NotThere):
    """The thread is no longer in the mailbox."""

    kind = "thread"


class HistoryExpired(GmailError):
    """Gmail no longer knows the changes since this point; only a full resync tells what the mailbox holds now."""

    def __init__(self, start_history_id: int) -> None:
        super().__init__(f"Gmail no longer has the history since {start_history_id} (404); sync the mailbox anew")
        self.start_history_id = start_history_id


class LabelNotFound(GmailError):
    """No label of the mailbox has this name, or this id."""

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
    """No answer came from Gmail, or not the whole of it. What was asked for may have been done nevertheless."""

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


class NotFromGmail(BadAnswer):
    """Something else answered in Gmail's place, as the sign-in page of a hotel does."""


class AnswerTooLarge(BadAnswer):
    """The answer has more bytes than any of Gmail's."""

    def __init__(self, call: str, largest: int) -> None:
        super().__init__(f"{call} was answered with more than {largest >> 20} MiB")


class NoLabels(BadAnswer):
    """A list of labels without any. Every mailbox has those of Gmail itself, so nothing follows from it."""

    def __init__(self) -> None:
        super().__init__("labels.list was answered with no labels at all, which no mailbox has; it is asked again")


class EndlessPages(BadAnswer):
    """The pages of a list lead in a circle, or never end."""


def job_error_of(error: GmailError, context: str = "", account_id: UUID | None = None) -> Fatal | Retryable | Parked:
    """How a job ends after `error`. One whose consent is lost waits under the key of its account, if that is known.

    An expired history is no failure of the mailbox's: who syncs catches it and starts anew. Should it come here all the
    same, another try is right and an end is not.
    """
    message = f"{context}: {error}" if context else str(error)
    match error:
        case ConsentLost() if account_id is not None:
            return Parked(parking_key(account_id), message)
        case RateLimited() | ServerError() | TokenUnavailable():
            return Retryable(message, after=error.retry_after)
        case ConsentLost() | Unauthorized() | Unreachable() | NotFromGmail() | NoLabels() | HistoryExpired():
            return Retryable(message)
        case _:
            return Fatal(message)
