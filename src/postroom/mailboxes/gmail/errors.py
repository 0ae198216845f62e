"""The errors of the Gmail client, as one branch of the error tree.

    MailboxError
    └── GmailError
        ├── Unauthorized        401: the access token is not accepted, not even a new one
        ├── ConsentLost         the user's consent is gone: only the user can renew it
        ├── GmailTokenUnavailable  no access token is available for now
        ├── RateLimited         429, or 403 for a rate; carries Google's own waiting time
        │   └── QuotaExhausted      the day's or the project's quota is used up: a long wait
        ├── Forbidden           403 for a reason that a new consent does not fix
        │   └── ScopeMissing        names the scope that the user has not granted, and the level that has it
        ├── NotThere            404
        │   ├── MessageNotFound
        │   ├── DraftNotFound
        │   └── ThreadNotFound
        ├── HistoryExpired      404 for history.list; the caller answers with a full resync
        ├── LabelNotFound       no label has this name, or this id
        ├── GmailRefused        any other 4xx
        │   └── LabelExists         409 for labels.create
        ├── ServerError         5xx, and 408
        ├── Unreachable         no answer came, or not the whole of it
        ├── TooBusy             this machine was too busy to send the request: Gmail knows nothing of it
        ├── NoPermit            a change without a permit: a bug of ours
        ├── Withheld            part of a batch that the gate did not let out
        ├── NotFromGmail        not even JSON, or a redirection: something else answers in Gmail's place
        ├── NoLabels            a list of labels without any: every mailbox has some
        └── BadAnswer           an answer that Gmail does not give
            ├── AnswerTooLarge      more bytes than any answer of Gmail has
            └── EndlessPages        page tokens that lead in a circle, or never end

Each is also one of the kinds of `MailboxError`, which is all that others need to know.

No message quotes an access token, a header we sent, or any content of a mail. Google's own error text may quote what it
was sent, so only its `reason`, one word, is kept.
"""

from datetime import timedelta

from postroom.core.errors import (
    LabelMissing,
    MailboxBusy,
    MailboxError,
    MailboxFailed,
    MailboxLater,
    MailboxRefused,
    MailboxUnreachable,
    MessageGone,
    NeedsPerson,
    NoAccess,
    NotAllowed,
    NotInMailbox,
    NotSent,
    PostroomError,
    RequestRefused,
    UnreadableAnswer,
)
from postroom.mailboxes.gmail.scopes import Consented, level_for, needs_more

# While an app's consent screen is in "Testing", Google ends every consent after seven days.
TESTING_LIFE = timedelta(days=7)


class GmailError(MailboxError):
    """The root of all errors of the Gmail client."""


class NoPermit(GmailError, MailboxRefused):
    """A call that changes the mailbox was made without a permit, or by a client without a gate."""

    def __init__(self, call: str) -> None:
        super().__init__(f"{call} changes the mailbox, but came without a permit; nothing was sent")


class TooBusy(GmailError, NotSent):
    """The gate was asked again and again, and its clearance was over each time before the request could leave."""


class Withheld(GmailError, MailboxRefused):
    """The gate did not let this part of a batch out. `why` is the error that a single call would raise."""

    def __init__(self, call: str, why: PostroomError) -> None:
        super().__init__(f"{call}: {why}")
        self.why = why


class Unauthorized(GmailError, NoAccess):
    """Gmail did not accept the access token."""

    def __init__(self, call: str) -> None:
        super().__init__(
            f"{call}: Gmail did not accept the access token (401); a new one is fetched for the next try, "
            "and if it persists, connect the account again"
        )


class ConsentLost(GmailError, NeedsPerson):
    """The user's consent is gone. `age` is how long it lasted, if known."""

    def __init__(self, account: str, reason: str = "invalid_grant", age: timedelta | None = None) -> None:
        why = "it was withdrawn, the password was changed, or it was not used for six months"
        if age is not None and TESTING_LIFE <= age < TESTING_LIFE + timedelta(days=1):
            why = (
                'the app is in "Testing", where Google ends every consent after 7 days: publish the app in the '
                "Google Cloud console under OAuth consent screen"
            )
        super().__init__(
            f"Google no longer lets Postroom into {account} ({reason}): {why}; "
            "connect the account again with `postroom account add gmail`, and waiting work continues"
        )
        self.account = account
        self.reason = reason


class GmailTokenUnavailable(GmailError, NoAccess):
    """No access token is available for now."""

    def __init__(self, problem: str, retry_after: timedelta | None = None) -> None:
        super().__init__(
            f"no access token is available: {problem}; this is retried, "
            "and if it persists, check the network connection and the account with `postroom account list`",
            retry_after,
        )


class RateLimited(GmailError, MailboxBusy):
    """Too many requests in too short a time. `retry_after` is Google's own waiting time, if it gave one."""

    what = "Gmail's rate limit"
    remedy = "if this happens often, lower the account's quota settings"

    def __init__(self, call: str, reason: str, retry_after: timedelta | None = None) -> None:
        wait = "later" if retry_after is None else f"in {retry_after.total_seconds():.0f} s"
        problem = f"{call}: {self.what} is reached ({reason}); it is retried {wait}, and {self.remedy}"
        super().__init__(problem, retry_after)
        self.reason = reason


class QuotaExhausted(RateLimited):
    """The quota of the day, or of the whole project, is used up. Retrying sooner does not help."""

    what = "a quota of Gmail"
    remedy = "if this happens often, check the project's quotas in the Google Cloud console"


class Forbidden(GmailError, NotAllowed):
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

    def with_consent(self, consented: Consented | None) -> "ScopeMissing":
        """The same error, with the account and its granted scopes, which Google's refusal does not contain."""
        return self if consented is None else ScopeMissing(self.call, self.reason, self.scope, consented)


class NotThere(GmailError, NotInMailbox):
    """The mailbox has nothing with this id."""

    kind = "what was asked for"

    def __init__(self, id: str) -> None:
        super().__init__(
            f"{self.kind} {id} is not in the mailbox (404): it was deleted there, so nothing can be done with it; "
            "dismiss whatever still refers to it"
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


class HistoryExpired(GmailError, MailboxLater):
    """Gmail no longer has the changes since this point; only a full resync shows the current mailbox."""

    def __init__(self, start_history_id: int) -> None:
        super().__init__(
            f"Gmail no longer has the history since {start_history_id} (404); sync the whole mailbox again"
        )
        self.start_history_id = start_history_id


class LabelNotFound(GmailError, LabelMissing):
    """No label of the mailbox has this name, or this id."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the mailbox has no label {name!r}; create it in Gmail or correct the name")
        self.name = name


class GmailRefused(GmailError, RequestRefused):
    """Gmail understood the request and does not accept it."""

    def __init__(self, call: str, status: int, reason: str, remedy: str) -> None:
        super().__init__(f"{call}: Gmail refused the request ({status} {reason}); {remedy}")
        self.status = status
        self.reason = reason


class LabelExists(GmailRefused):
    """A label of this name, or a conflicting one, already exists."""


class ServerError(GmailError, MailboxFailed):
    """Gmail failed on its own side."""

    def __init__(self, call: str, status: int, retry_after: timedelta | None = None) -> None:
        super().__init__(
            f"{call}: Gmail failed on its own side ({status}); it is retried, "
            "and if it persists, check Google's status dashboard",
            retry_after,
        )
        self.code = str(status)


class Unreachable(GmailError, MailboxUnreachable):
    """No answer came from Gmail, or only part of it. The call may nevertheless have taken effect."""

    def __init__(self, call: str, failure: str) -> None:
        super().__init__(
            f"{call}: no answer from Gmail ({failure}); it is retried, "
            "and if it persists, check the network connection and the API address"
        )


def _unreadable(problem: str) -> str:
    return (
        f"an answer of Gmail could not be parsed: {problem}; "
        "check that the API address is Google's and that no proxy answers in its place"
    )


class NotFromGmail(GmailError, MailboxFailed):
    """Something else answered in Gmail's place, such as the sign-in page of a hotel."""

    def __init__(self, problem: str) -> None:
        super().__init__(_unreadable(problem))


class NoLabels(GmailError, MailboxFailed):
    """A list of labels without any. Every mailbox has Gmail's own labels, so the answer proves nothing."""

    def __init__(self) -> None:
        problem = "labels.list was answered with no labels at all, which no mailbox has; it is retried"
        super().__init__(_unreadable(problem))


class BadAnswer(GmailError, UnreadableAnswer):
    """The answer is not one that Gmail gives."""

    def __init__(self, problem: str) -> None:
        super().__init__(_unreadable(problem))


class AnswerTooLarge(BadAnswer):
    """The answer has more bytes than any of Gmail's."""

    is_too_large = True

    def __init__(self, call: str, largest: int) -> None:
        super().__init__(f"{call} was answered with more than {largest >> 20} MiB")


class EndlessPages(BadAnswer):
    """The pages of a list form a loop, or never end."""
