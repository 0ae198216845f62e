"""Signs in to mail servers with the stored passwords of accounts, or with access tokens by their consents.

The account is read before each connection, so that a new password or another server counts at once, and one that is
paused or removed is not used. A refused sign-in parks the account, with the reason: it becomes `needs_consent`, and
nobody tries the same password again, which could lock the owner out. Each account signs in once at a time, so that two
connections do not both try a password that is wrong. A refused access token is replaced once; then the account is
parked too, as it is when the consent behind it has ended.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

import structlog

from postroom.core.errors import (
    MailboxFailed,
    MailboxUnreachable,
    NeedsPerson,
    NeedsRepair,
    NotAllowed,
    NotFound,
    SettingsError,
    StoreError,
    VaultError,
)
from postroom.core.mail.account_repair import (
    connect_command,
    repair_for,
    resume_command,
)
from postroom.core.mail.secret_fields import PASSWORD, REFRESH_TOKEN, SMTP_PASSWORD
from postroom.core.mail.servers import AppName, MailServers
from postroom.mailboxes.imap.account import OpenSession, open_session
from postroom.mailboxes.imap.connection import CONNECT_S
from postroom.mailboxes.imap.errors import REMEDIES, ImapError, ImapSignInRefused, NotOffered
from postroom.mailboxes.imap.identity import read_id
from postroom.mailboxes.imap.presets import preset_at
from postroom.mailboxes.imap.repair import password_command, sign_in_command
from postroom.mailboxes.imap.session import ImapSession
from postroom.mailboxes.imap.sign_in import Credentials
from postroom.mailboxes.imap.tokens import HeldConsent, MailTokens
from postroom.mailboxes.imap.wire import Endpoint
from postroom.mailboxes.oauth.errors import AppRefused, GrantEnded, TokenUnavailable

if TYPE_CHECKING:
    from postroom.mailboxes.accounts.book import AccountBook
    from postroom.store.accounts.accounts import AccountView

log = structlog.get_logger()

_WITH_A_NEW_PASSWORD = frozenset({"password", "app_password", "expired"})


class AccountWaits(ImapError, NeedsPerson):
    """The account is paused, or its password was refused: it waits for its owner."""


class SecretUnreadable(AccountWaits, NeedsRepair):
    """The key that sealed the password is not here, or is another one."""


class AccountGone(ImapError, NotAllowed):
    """The account was removed, or never connected."""


class AccountUnreadable(ImapError, MailboxFailed):
    """The database does not tell the account's servers now."""


class TokenLater(ImapError, MailboxUnreachable):
    """There is no access token now; it is asked for again."""


class SubmissionAccess(NamedTuple):
    """Where an account hands over its mail, with what."""

    account: AccountView
    endpoint: Endpoint
    credentials: Credentials
    context: ssl.SSLContext


@dataclass(eq=False, slots=True)
class ImapSignIns:
    """The ways into the mailboxes of all accounts that are reached over IMAP."""

    book: AccountBook
    connect_s: float = CONNECT_S
    tokens: MailTokens | None = None
    _turns: dict[UUID, asyncio.Lock] = field(default_factory=dict[UUID, asyncio.Lock], init=False)

    def opener(self, account_id: UUID) -> OpenSession:
        return partial(self.open, account_id)

    async def open(self, account_id: UUID) -> ImapSession:
        """Open a connection and sign in. Raises ImapError; AccountWaits once a person must act."""
        async with self._turns.setdefault(account_id, asyncio.Lock()):
            account, servers, secret = await self._usable(account_id, PASSWORD)
            credentials = await self._credentials(account, servers, secret)
            try:
                return await self._session(account_id, servers, credentials)
            except ImapSignInRefused as error:
                if not self.discard(account_id, credentials):
                    raise await self.refused(account, error) from None
            except NotOffered as error:
                raise await self.refused(account, error) from None
            # The token may have ended before its time; another one tells whether it was the token.
            credentials = await self._credentials(account, servers, secret)
            try:
                return await self._session(account_id, servers, credentials)
            except (ImapSignInRefused, NotOffered) as error:
                self.discard(account_id, credentials)
                raise await self.refused(account, error, HeldConsent.read(secret).app) from None

    async def submission(self, account_id: UUID) -> SubmissionAccess:
        """How to hand over mail of the account. Raises ImapError, also if it was connected without a server for it."""
        account, servers, secret = await self._usable(account_id, SMTP_PASSWORD)
        endpoint = submission_endpoint_of(servers)
        if endpoint is None:
            raise AccountGone(
                f"{account.email} cannot send: no server for sending was given; run "
                f"`{password_command(account.email)} --smtp-host HOST`"
            )
        credentials = await self._credentials(account, servers, secret)
        return SubmissionAccess(account, endpoint, credentials, context_for(servers))

    def discard(self, account_id: UUID, credentials: Credentials) -> bool:
        """Discard an access token that a server did not accept. False for a password, which stays what it is."""
        if self.tokens is None or credentials.kind == "password":
            return False
        self.tokens.refused(account_id, credentials.secret)
        return True

    async def refused(
        self, account: AccountView, error: ImapSignInRefused | NotOffered, app: AppName | None = None
    ) -> ImapError:
        """Park the account, unless it has another password by now; return the error that says what to do."""
        return await self._park(account, refusal_reason(account.email, error, app), error.code)

    async def _park(self, account: AccountView, reason: str, code: str | None) -> ImapError:
        servers = account.servers
        if servers is None:
            return AccountWaits(reason)
        try:
            is_parked = await self.book.refuse_sign_in(account.id, servers.given_at, reason, "process:imap")
        except StoreError:
            return AccountUnreadable("the refused sign-in could not be stored; it may work later")
        if not is_parked:
            return AccountUnreadable(f"{account.email} was given another password meanwhile; it may work now")
        log.warning("account.sign_in_refused", account=account.id, code=code)
        return AccountWaits(reason)

    async def _session(self, account_id: UUID, servers: MailServers, credentials: Credentials) -> ImapSession:
        async def given() -> Credentials:
            return credentials

        session = await open_session(imap_endpoint_of(servers), given, context_for(servers), self.connect_s)
        try:
            await self._keep_scheme(session, account_id)
        except BaseException:
            session.connection.close()
            raise
        return session

    async def _keep_scheme(self, session: ImapSession, account_id: UUID) -> None:
        """A server that learns to give ids to messages (OBJECTID) must not make all of them new: a mailbox that is
        known by hashes stays so. The letters with which ids begin are in such an order that the last id tells.
        """
        if session.scheme != "objectid":
            return
        try:
            last = await self.book.last_message_id(account_id)
        except StoreError as error:
            raise AccountUnreadable(f"the account cannot be read now ({type(error).__name__})") from None
        known = None if last is None else read_id(last)
        if known is not None and known.scheme == "hash":
            session.keep_scheme("hash")

    async def _credentials(self, account: AccountView, servers: MailServers, secret: str) -> Credentials:
        """The password, or an access token by the consent. Raises ImapError; AccountWaits if the consent has ended."""
        if servers.sign_in == "password":
            return Credentials(servers.user_name, secret)
        if self.tokens is None:
            raise AccountGone(f"{account.email} signs in with access tokens, which are not available here")
        try:
            token = await self.tokens.of(account.id, servers.given_at)
        except GrantEnded as error:
            reason = f"{error}; run `{sign_in_command(account.email, HeldConsent.read(secret).app)}`"
            raise await self._park(account, reason, error.reason) from None
        except AppRefused as error:
            again = f", then run `{sign_in_command(account.email, HeldConsent.read(secret).app)}`"
            reason = f"{error}{again}" if error.needs_consent else repair_for(str(error), account.email)
            raise await self._park(account, reason, "app") from None
        except SettingsError as error:
            raise await self._park(account, repair_for(str(error), account.email), "settings") from None
        except TokenUnavailable as error:
            raise TokenLater(str(error)) from None
        except VaultError as error:
            raise SecretUnreadable(str(error)) from None
        except StoreError as error:
            raise AccountUnreadable(f"the account cannot be read now ({type(error).__name__})") from None
        return Credentials(servers.user_name, token, servers.sign_in)

    async def _usable(self, account_id: UUID, field: str) -> tuple[AccountView, MailServers, str]:
        """The account with its password or consent; mail is sent with those for reading if there is no other."""
        try:
            held = await self.book.with_secret(account_id, field)
            servers = held.account.servers
            if servers is not None and servers.sign_in != "password":
                field = REFRESH_TOKEN
                held = await self.book.with_secret(account_id, field)
            elif held.sealed is None and field == SMTP_PASSWORD:
                field = PASSWORD
                held = await self.book.with_secret(account_id, field)
            account, sealed = held
            if account.state != "active" or account.servers is None or sealed is None:
                raise _unusable(account)
            return account, account.servers, self.book.open(sealed, account_id, field)
        except NotFound as error:
            raise AccountGone(str(error)) from None
        except VaultError as error:
            raise SecretUnreadable(str(error)) from None
        except StoreError as error:
            raise AccountUnreadable(f"the account cannot be read now ({type(error).__name__})") from None


def imap_endpoint_of(servers: MailServers) -> Endpoint:
    return Endpoint(servers.imap_host, servers.imap_port, servers.imap_security)


def submission_endpoint_of(servers: MailServers) -> Endpoint | None:
    if servers.smtp_host is None or servers.smtp_port is None or servers.smtp_security is None:
        return None
    return Endpoint(servers.smtp_host, servers.smtp_port, servers.smtp_security)


def context_for(servers: MailServers) -> ssl.SSLContext:
    """Certificates are checked, and names too."""
    return trusting(servers.trusted_certificates)


@cache
def trusting(certificates: str | None) -> ssl.SSLContext:
    """A context with the system's authorities, and these certificates besides. Loading them takes a while, so accounts
    share it. Raises ssl.SSLError if there are none in the text.
    """
    context = ssl.create_default_context()
    if certificates is not None:
        context.load_verify_locations(cadata=certificates)
        # A server's own certificate may be trusted as it is, whoever signed it.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def refusal_reason(email: str, error: ImapSignInRefused | NotOffered, app: AppName | None = None) -> str:
    """Why the account waits, and what its owner does about it, with the word of a known provider on its passwords."""
    if isinstance(error, NotOffered):
        return repair_for(f"{error}; {REMEDIES['policy']}", email)
    problem, _, remedy = str(error).rpartition("; ")
    if error.cause == "token" and app is not None:
        return f"{problem}; run `{sign_in_command(email, app)}`"
    if error.cause not in _WITH_A_NEW_PASSWORD:
        return repair_for(str(error), email)
    preset = preset_at(error.host)
    hint = f". {preset.password.rstrip('.')}" if preset is not None else f": {remedy}"
    return f"{problem}{hint}; run `{password_command(email)}` and give the new one"


def _unusable(account: AccountView) -> ImapError:
    match account.state:
        case "paused":
            return AccountWaits(f"{account.email} is paused; run `{resume_command(account.email)}`")
        case "needs_consent":
            return AccountWaits(account.state_reason or f"run `{password_command(account.email)}`")
        case "removed" | "active":
            command = connect_command(account.provider, account.email)
            return AccountGone(f"{account.email} is not connected; connect it with `{command}`")
