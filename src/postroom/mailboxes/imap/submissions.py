"""Hands over the mail of accounts that are reached over IMAP to their submission servers.

A refused sign-in does not park the account: its mailbox can still be read and changed, and many providers switch
sending on separately. It is remembered instead, and nobody tries the same password again for an hour, which could lock
the owner out; a new password counts at once.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from postroom.core.mail.servers import MailServers
from postroom.mailboxes.imap.errors import ImapError, ImapSignInRefused
from postroom.mailboxes.imap.presets import files_copies
from postroom.mailboxes.imap.sign_in import Credentials
from postroom.mailboxes.imap.sign_ins import ImapSignIns, SubmissionAccess
from postroom.mailboxes.imap.submission import Goodbye, Leaving, Submission
from postroom.system.wall_clock import Clock, wall_clock

REFUSED_FOR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class _Refusal:
    error: ImapSignInRefused
    given_at: datetime | None
    until: datetime


class Submissions:
    """The submission servers of all accounts, and which of them have refused a sign-in."""

    def __init__(self, sign_ins: ImapSignIns, clock: Clock = wall_clock) -> None:
        self._sign_ins = sign_ins
        self._clock = clock
        self._refusals: dict[UUID, _Refusal] = {}

    def of(self, account_id: UUID, servers: MailServers | None) -> "AccountSubmission":
        files = servers is not None and (servers.files_sent_mail or files_copies(servers.smtp_host or ""))
        return AccountSubmission(self, account_id, files)

    async def check(self, account_id: UUID) -> None:
        """Raise ImapError if the account cannot send now: there is no server for it, or its password was refused."""
        await self._access(account_id)

    async def submit(self, account_id: UUID, mail: bytes, leaving: Leaving) -> Goodbye:
        access, given_at = await self._access(account_id)
        has_begun = False

        async def begin() -> None:
            nonlocal has_begun
            has_begun = True
            await leaving()

        try:
            return await _submission(access).submit(mail, begin)
        except ImapSignInRefused as error:
            if has_begun or not self._sign_ins.discard(account_id, access.credentials):
                raise self._remember(account_id, error, given_at) from None
        # The token may have ended before its time; another one tells whether it was the token.
        access, given_at = await self._access(account_id)
        try:
            return await _submission(access).submit(mail, leaving)
        except ImapSignInRefused as error:
            raise self._remember(account_id, error, given_at) from None

    def _remember(self, account_id: UUID, error: ImapSignInRefused, given_at: datetime | None) -> ImapSignInRefused:
        self._refusals[account_id] = _Refusal(error, given_at, self._clock() + REFUSED_FOR)
        return error

    async def _access(self, account_id: UUID) -> tuple[SubmissionAccess, datetime | None]:
        access = await self._sign_ins.submission(account_id)
        given_at = None if access.account.servers is None else access.account.servers.given_at
        refusal = self._refusals.get(account_id)
        if refusal is not None and refusal.given_at == given_at and self._clock() < refusal.until:
            raise _again(refusal.error)
        return access, given_at


@dataclass(frozen=True, slots=True)
class AccountSubmission:
    """The submission server of one account, as it is set up at the moment at which a mail leaves."""

    submissions: Submissions
    account_id: UUID
    files_copies: bool

    async def submit(self, mail: bytes, leaving: Leaving) -> Goodbye:
        return await self.submissions.submit(self.account_id, mail, leaving)


def _submission(access: SubmissionAccess) -> Submission:
    async def given() -> Credentials:
        return access.credentials

    return Submission(access.endpoint, given, access.context)


def _again(error: ImapSignInRefused) -> ImapError:
    """The same refusal: one object raised twice would collect tracebacks."""
    return ImapSignInRefused(error.host, error.code, error.cause)
