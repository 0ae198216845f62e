"""Every error that Postroom raises, as one tree. A message says which value was wrong, why, and how to fix it.

PostroomError
├── BadInput              a value from outside was refused; names the field and the remedy
│   ├── UnknownJobType
│   ├── TooManyRequests   a connector has reached its limit of waiting requests
│   ├── SubmissionRefused a mail, or its envelope, is not accepted as it is; has the reply of SMTP
│   └── Conflict          the same key was used for something else; names both
├── Refused               the caller is unknown, or may not do this
│   ├── AccessRefused         a program asked for what its token does not allow; counted and audited
│   ├── SignInRefused         a failed proof of identity; the message is shown to the person
│   └── SafetyRefused         safety does not allow this action, or not from this caller
├── SettingsError         a setting is missing, unknown or out of range
├── NotFound              the named thing does not exist
├── IllegalMove           the lifecycle does not allow this transition
├── MailboxError          a mailbox did not carry out a request
│   ├── NotInMailbox          gone: what was named is not there
│   │   ├── MessageGone
│   │   └── LabelMissing
│   ├── MailboxRefused        refused: the same again is refused again
│   │   ├── RequestRefused        it does not accept what it was given
│   │   ├── NotAllowed            it does not let this account do this, whatever it is given
│   │   └── UnreadableAnswer      its answer is malformed
│   ├── MailboxLater          later: carries the mailbox's own waiting time, if it gave one
│   │   ├── MailboxBusy           too many requests in too short a time
│   │   ├── NoAccess              it refuses access for now
│   │   ├── MailboxFailed         it failed on its own side
│   │   ├── MailboxUnreachable    no answer came, or only part of it
│   │   └── NotSent               this machine was too busy to send the request in time: the mailbox knows nothing of it
│   └── NeedsPerson           needs a person: the jobs of the account wait until somebody has acted
│       └── NeedsRepair           … outside of Postroom, which nobody reports: tried again now and then
├── AccountUnusable       the account is paused, has lost its consent, was removed, or was never connected
├── VaultError            a secret cannot be sealed or opened
│   ├── KeyMissing            the key that sealed it is not available
│   ├── KeyDropped            the key was dropped and seals nothing any more
│   └── SealBroken            the sealed value was changed, or belongs to something else
├── StoreError            the database could not do what was asked
│   ├── DatabaseUnavailable   unreachable for longer than we wait
│   ├── DatabaseReadOnly
│   ├── DatabaseFull
│   ├── DatabaseCorrupt
│   ├── DatabaseReplaced      the file at the database's path is not the one that is open
│   ├── ConstraintBroken      the schema forbids this row
│   ├── TookTooLong           the time limit was reached; ask for less
│   ├── NothingHere           the database does not exist yet
│   ├── SchemaMismatch        too old, changed after it was applied, or not migrated yet
│   │   └── DatabaseNewer         written by a newer program than this one
│   ├── DatabaseInUse         another process uses the database that is to be replaced
│   └── UnsafeDurability      the server may lose what it has acknowledged
├── AlreadyServed         another process serves this database
├── BackupError           a backup cannot be made, or is damaged or incomplete
├── IntakeRefused         nothing new is accepted now; says when to come back
│   └── TooFast           a connector is ahead of the rate of its backfill
├── NotAdmitted           mail of this sender is not accepted; says until when, if waiting helps
│   ├── DailyLimitReached     the day's limit of the sender or its domain
│   ├── SenderThrottled       a throttle is in force
│   ├── SenderTooFast         too many messages in too short a time
│   ├── SenderDisabled        the sender was disabled
│   └── TenantPaused          the tenant is paused
├── SwitchboardUnavailable    the switchboard could not be reached or could not work; try again later
├── ModelError            the language model made no decision
│   ├── ModelUnavailable      not now: down, too slow, too busy; says when to come back, if known
│   ├── ModelRefused          the provider rejects the configuration; names the setting to fix
│   ├── BadModelAnswer        two answers contained no decision, or the provider refuses this mail
│   ├── BudgetSpent           the call would exceed a cap; says until when, if waiting helps
│   │   └── ShareSpent            … the share of the sender, of its domain or of its tier
│   └── BackfillHeld          a backfill has reached its cap or was stopped; has the key under which its mail waits
├── LeaseLost             another worker has taken over the work; stop, change nothing
└── JobError              how a handler ends a job other than by success
    ├── Fatal                 do not try again
    ├── Retryable             try again, after a while
    ├── Parked                wait, without using up attempts, until the key is released or a time is over
    └── Canceled              the user asked for it to stop
"""

from datetime import datetime, timedelta
from typing import Literal


class PostroomError(Exception):
    """The root of all errors that Postroom raises on purpose."""


class BadInput(PostroomError):
    """A value from outside was refused."""

    def __init__(self, field: str, problem: str, remedy: str) -> None:
        super().__init__(f"{field}: {problem}; {remedy}")
        self.field = field
        self.problem = problem
        self.remedy = remedy


class UnknownJobType(BadInput):
    """No job type with this name is registered."""


class TooManyRequests(BadInput):
    """The connector has reached its limit of waiting requests; no more are accepted until some have ended."""


class SubmissionRefused(BadInput):
    """A submitted mail, or its envelope, is not accepted as it is. `code` and `status` are those of SMTP's reply."""

    def __init__(self, field: str, problem: str, remedy: str, code: int = 554, status: str = "5.6.0") -> None:
        super().__init__(field, problem, remedy)
        self.code = code
        self.status = status


class Conflict(BadInput):
    """The same key or event was accepted before, with other content."""


class Refused(PostroomError):
    """The caller is unknown, or may not do this."""


class AccessRefused(Refused):
    """The token of the caller does not allow this operation, queue, endpoint or channel. `reason` is the
    value that the metric counts.
    """

    def __init__(self, field: str, problem: str, remedy: str, reason: Literal["role", "identity", "channel"]) -> None:
        super().__init__(f"{field}: {problem}; {remedy}")
        self.field = field
        self.problem = problem
        self.remedy = remedy
        self.reason: Literal["role", "identity", "channel"] = reason


class SignInRefused(Refused):
    """A failed proof of identity. The message is shown to the person; `retry_after_s` is how long to wait."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class SafetyRefused(Refused):
    """Safety does not allow this action on this mail, or not from this caller; the message has the reasons. `reasons`
    are those of the safety check, without the request.
    """

    def __init__(self, message: str, reasons: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.reasons = reasons


class SettingsError(PostroomError):
    """A setting is missing, unknown or out of range."""


class NotFound(PostroomError):
    """The named thing does not exist."""


class IllegalMove(PostroomError):
    """The lifecycle does not allow this transition."""


class MailboxError(PostroomError):
    """A mailbox did not carry out a request. `code` is the provider's own error code, and contains no mail content."""

    code: str | None = None


class NotInMailbox(MailboxError):
    """The message or label is not in the mailbox, or not any more."""


class MessageGone(NotInMailbox):
    """The mailbox no longer has the message."""


class LabelMissing(NotInMailbox):
    """No label of the mailbox has this name, or this id."""


class MailboxRefused(MailboxError):
    """The mailbox does not do this, and asking again does not help."""


class RequestRefused(MailboxRefused):
    """The mailbox does not accept the request."""


class NotAllowed(MailboxRefused):
    """The mailbox never lets this account do this."""


class UnreadableAnswer(MailboxRefused):
    """The mailbox's answer is malformed or too large."""

    is_too_large = False


class MailboxLater(MailboxError):
    """The mailbox does not do this now. `retry_after` is its own waiting time, when it gave one."""

    def __init__(self, message: str, retry_after: timedelta | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class MailboxBusy(MailboxLater):
    """Too many requests in too short a time."""


class NoAccess(MailboxLater):
    """The mailbox refuses access for now."""


class MailboxFailed(MailboxLater):
    """The mailbox, or what answers in its place, failed on its own side."""


class MailboxUnreachable(MailboxLater):
    """No answer came, or only part of it. The request may nevertheless have taken effect."""


class NotSent(MailboxLater):
    """Postroom was too busy to send the request while the gate's clearance was valid. Nothing was sent, so it costs no
    attempt, and says nothing about the mailbox or the network.
    """

    def __init__(self, request: str) -> None:
        super().__init__(
            f"{request}: this machine is too busy; the request was not sent, and is repeated by itself. If this "
            "persists, give Postroom more processor time"
        )


class NeedsPerson(MailboxError):
    """The mailbox is unusable until a person acts; the message says how."""


class NeedsRepair(NeedsPerson):
    """A person must repair something outside of Postroom, such as renew a certificate. The repair is not reported, so
    Postroom checks now and then.
    """


class AccountUnusable(PostroomError):
    """Nothing can be done with the account until a person has acted. `state` is the account's."""

    def __init__(self, state: str, problem: str, remedy: str, field: str = "account") -> None:
        super().__init__(f"{problem}; {remedy}")
        self.field = field
        self.state = state
        self.problem = problem
        self.remedy = remedy


class VaultError(PostroomError):
    """A secret cannot be sealed or opened."""


class KeyMissing(VaultError):
    """The key that sealed the secret is not available."""


class KeyDropped(VaultError):
    """The key was dropped and seals nothing any more."""


class SealBroken(VaultError):
    """The sealed value was changed, or belongs to something else."""


class StoreError(PostroomError):
    """The database could not carry out a request."""


class DatabaseUnavailable(StoreError):
    """The database could not be reached for longer than we wait."""


class DatabaseReadOnly(StoreError):
    """The database, or the disk it lies on, cannot be written."""


class DatabaseFull(StoreError):
    """The disk is full."""


class DatabaseCorrupt(StoreError):
    """The database file is damaged."""


class DatabaseReplaced(StoreError):
    """The file at the database's path is not the one that is open, or was overwritten: writes would be lost."""


class ConstraintBroken(StoreError):
    """The schema forbids this row."""


class TookTooLong(StoreError):
    """The operation reached its time limit and changed nothing; ask for less."""


class Collided(StoreError):
    """Another transaction changed data that this one has read: it is run again."""


class NothingHere(StoreError):
    """The database does not exist yet, and looking does not create it."""


class SchemaMismatch(StoreError):
    """The schema is newer than this program, too old, changed after it was applied, or not migrated yet."""


class DatabaseNewer(SchemaMismatch):
    """A newer program has written the database."""


class DatabaseInUse(StoreError):
    """Another process uses the database that is to be replaced."""


class BackupError(PostroomError):
    """A backup cannot be made, or an existing one is damaged, incomplete or of another kind."""


class UnsafeDurability(StoreError):
    """The database server may lose acknowledged writes."""


class AlreadyServed(PostroomError):
    """Another process serves this database."""


class IntakeRefused(PostroomError):
    """Nothing new is accepted right now."""

    def __init__(self, message: str, retry_after: timedelta) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TooFast(IntakeRefused):
    """A connector does more for a backfill than its rate allows."""


class NotAdmitted(PostroomError):
    """Mail of this sender is not accepted: until `until`, or, when that is None, until a person has acted."""

    def __init__(self, message: str, until: datetime | None = None) -> None:
        super().__init__(message)
        self.until = until


class DailyLimitReached(NotAdmitted):
    """The sender, or its domain, has submitted as much as is allowed on one day."""


class SenderThrottled(NotAdmitted):
    """The sender is throttled: nothing is accepted before the throttle's end."""


class SenderTooFast(NotAdmitted):
    """The sender submits more messages in a minute than one may."""


class SenderDisabled(NotAdmitted):
    """The sender was disabled by the operator."""


class TenantPaused(NotAdmitted):
    """The sender's tenant was paused by the operator."""


class SwitchboardUnavailable(PostroomError):
    """The switchboard could not be reached, or could not do its work; the same call may be repeated."""


class ModelError(PostroomError):
    """The language model made no decision."""


class ModelUnavailable(ModelError):
    """The model cannot be asked right now. `after` is when to come back, where that is known."""

    def __init__(self, message: str, after: timedelta | None = None) -> None:
        super().__init__(message)
        self.after = after


class ModelRefused(ModelError):
    """The provider rejects the configuration of the model; the message names the setting to fix."""


class BadModelAnswer(ModelError):
    """The answer is not a decision, or the provider refuses this mail. The message quotes nothing of the answer, since
    the mail may have dictated it.
    """


class BudgetSpent(ModelError):
    """The call would exceed a cost cap: until `until`, or, when that is None, until a setting is changed."""

    def __init__(self, message: str, until: datetime | None = None) -> None:
        super().__init__(message)
        self.until = until


class ShareSpent(BudgetSpent):
    """The sender, its domain or its tier has used up its share of the day's budget; others have not."""


class BackfillHeld(ModelError):
    """A backfill has reached its cap, is paused or was canceled. Its mail waits under `key`, or is left alone without
    one.
    """

    def __init__(self, message: str, key: str | None) -> None:
        super().__init__(message)
        self.key = key


class LeaseLost(PostroomError):
    """Another worker has taken over the work: stop, and change nothing."""


class ProtectedMail(PostroomError):
    """The mail has become protected: nothing is done with it, which is not a failure."""


class JobError(PostroomError):
    """How a handler ends a job other than by success."""


class Fatal(JobError):
    """The job failed for good and is not tried again."""


class Retryable(JobError):
    """The job failed for now. `after` is the server's own Retry-After, when it gave one."""

    def __init__(self, message: str, after: timedelta | None = None) -> None:
        super().__init__(message)
        self.after = after


class Parked(JobError):
    """The job cannot continue until a person acts; it waits under `key` without using up an attempt. With `after`, it
    tries again after that time, in case the repair is not reported or no person is needed.
    """

    def __init__(self, key: str, reason: str, after: timedelta | None = None) -> None:
        super().__init__(reason)
        self.key = key
        self.after = after


class Canceled(JobError):
    """The user asked for the job to stop."""
