"""Connect mailboxes over IMAP: store the servers that were tried, and the sealed password or consent."""

import contextlib
from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from postroom.core.access import OWN_AGAIN
from postroom.core.mail.accounts import normalised_address
from postroom.core.mail.secret_fields import PASSWORD, REFRESH_TOKEN, SMTP_PASSWORD
from postroom.core.mail.servers import MailServers
from postroom.mailboxes.accounts.book import AccountBook
from postroom.mailboxes.imap.account import open_session
from postroom.mailboxes.imap.errors import ImapError
from postroom.mailboxes.imap.facts import NAME
from postroom.mailboxes.imap.same_server import is_same_inbox, is_same_machine, is_same_service, may_be_same_user
from postroom.mailboxes.imap.sign_in import Credentials
from postroom.mailboxes.imap.sign_ins import ImapSignIns, context_for, imap_endpoint_of
from postroom.mailboxes.imap.tokens import HeldConsent
from postroom.mailboxes.oauth.errors import ConsentRefused
from postroom.mailboxes.oauth.mail_apps import MailApp
from postroom.mailboxes.oauth.tokens import exchange
from postroom.operations.accounts.connecting import TIMEOUT_S, CodeDialog
from postroom.operations.caller import Caller
from postroom.operations.installation.database import prepare
from postroom.operations.nouns import CONNECTORS
from postroom.operations.operation import flow
from postroom.store.accounts import accounts
from postroom.store.accounts.accounts import AccountView
from postroom.store.engine.database import Database
from postroom.vault.sealing import Vault


async def imap_account(database: Database, email: str) -> AccountView | None:
    """Return the IMAP account of an address, in any spelling, removed or not; None if there is none. Raise Conflict if
    the mailbox is connected through Gmail's API.
    """
    await prepare(database)
    found = await database.run(accounts.accounts_with_address(normalised_address(email)))
    accounts.refuse_second_way(found, NAME)
    return next((account for account in found if account.provider == NAME), None)


@CONNECTORS.operation(OWN_AGAIN, flow("/connectors/imap/connect"))
async def connect_imap(
    by: Caller, vault: Vault, /, email: str, servers: MailServers, password: str, smtp_password: str | None = None
) -> AccountView:
    """Connect a mailbox over IMAP: store servers and password, for its account or a new one. Safe to repeat."""
    secrets = {PASSWORD: password} | ({} if smtp_password is None else {SMTP_PASSWORD: smtp_password})
    return await _store(by, vault, email, servers, secrets)


async def connect_imap_by_consent(
    by: Caller, vault: Vault, email: str, servers: MailServers, consent: HeldConsent
) -> AccountView:
    """The same with a consent, by which access tokens are got."""
    return await _store(by, vault, email, servers, {REFRESH_TOKEN: consent.text})


class GivenConsent(NamedTuple):
    """The owner's consent, to be stored, and the first access token."""

    consent: HeldConsent
    access_token: str

    def __repr__(self) -> str:
        return f"GivenConsent({self.consent!r})"


async def ask_consent(app: MailApp, email: str, dialog: CodeDialog) -> GivenConsent:
    """Ask the owner for consent to the mailbox of this address, on the provider's page. Whether it is for that mailbox,
    its server tells.
    """
    import httpx2

    request, code = await dialog.code(lambda redirect_uri: app.begin(redirect_uri, email))
    async with httpx2.AsyncClient(timeout=TIMEOUT_S) as http:
        grant = await exchange(http, app.app, request, code)
    if grant.refresh_token is None:
        raise ConsentRefused(f"{app.provider} gave no refresh token; remove the app's consent there and start again")
    return GivenConsent(HeldConsent(app.name, grant.refresh_token), grant.access_token)


async def _store(by: Caller, vault: Vault, email: str, servers: MailServers, secrets: Mapping[str, str]) -> AccountView:
    found = await imap_account(by.database, email)
    await _refuse_second_account(by.database, vault, found and found.id, servers, secrets.get(PASSWORD))
    book = AccountBook(by.database, lambda: vault, by.clock)
    return await book.connect(NAME, email, secrets, by.signature, servers=servers)


async def _refuse_second_account(
    database: Database, vault: Vault, account_id: UUID | None, servers: MailServers, password: str | None
) -> None:
    """Raise Conflict if an account of another address signs in to the same mailbox, however its server and its user are
    named. Storing refuses equal names by itself; to look addresses up takes too long there.
    """
    here = imap_endpoint_of(servers)
    for each in await database.run(accounts.list_accounts()):
        others = each.servers
        if each.id == account_id or others is None or not may_be_same_user(others.user_name, servers.user_name):
            continue
        there = imap_endpoint_of(others)
        if not await is_same_machine(there, here):
            continue
        is_same_user = others.user_name.lower() == servers.user_name.lower()
        if (is_same_user and is_same_service(there, here)) or (
            password is not None and await _shares_inbox(database, vault, each, servers, password)
        ):
            raise accounts.second_account(each)


async def _shares_inbox(
    database: Database, vault: Vault, other: AccountView, servers: MailServers, password: str
) -> bool:
    """Return whether both find the same messages in the inbox. If one of them cannot be looked at, nobody can tell."""
    if other.state != "active" or other.servers is None or other.servers.sign_in != "password":
        return False

    async def given() -> Credentials:
        return Credentials(servers.user_name, password)

    with contextlib.suppress(ImapError):
        own = await open_session(imap_endpoint_of(servers), given, context_for(servers))
        with contextlib.closing(own.connection):
            theirs = await ImapSignIns(AccountBook(database, lambda: vault)).open(other.id)
            with contextlib.closing(theirs.connection):
                return await is_same_inbox(own, theirs)
    return False
