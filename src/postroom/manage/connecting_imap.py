"""Connect mailboxes over IMAP: store the servers that were tried, and the sealed password."""

from postroom.accounts.sealing import with_newest_key
from postroom.core.mail.accounts import normalised_address
from postroom.core.mail.servers import MailServers
from postroom.manage.database import prepare
from postroom.store import accounts, secret_keys
from postroom.store.accounts import PASSWORD, SMTP_PASSWORD, AccountView
from postroom.store.audit import Signature
from postroom.store.engine.clock import Clock, wall_clock
from postroom.store.engine.database import Database, Transaction
from postroom.store.engine.ids import new_id
from postroom.vault.sealing import Vault


async def imap_account(database: Database, email: str) -> AccountView | None:
    """Return the IMAP account of an address, in any spelling, removed or not; None if there is none. Raise Conflict if
    the mailbox is connected through Gmail's API.
    """
    await prepare(database)
    found = await database.run(accounts.accounts_with_address(normalised_address(email)))
    accounts.refuse_second_way(found, "imap")
    return next((account for account in found if account.provider == "imap"), None)


async def connect_imap(
    database: Database,
    vault: Vault,
    email: str,
    servers: MailServers,
    password: str,
    signed: Signature,
    smtp_password: str | None = None,
    clock: Clock = wall_clock,
) -> AccountView:
    """Store servers and password, for the mailbox's existing account or a new one. Safe to repeat."""
    found = await imap_account(database, email)
    account_id = new_id() if found is None else found.id
    address = normalised_address(email) if found is None else found.email
    uses = await database.run(secret_keys.list_key_uses())
    vault.prepare([use.id for use in uses if use.secrets], clock())
    secrets = {PASSWORD: password} | ({} if smtp_password is None else {SMTP_PASSWORD: smtp_password})

    def storing() -> Transaction[AccountView]:
        sealed = {field: vault.seal(account_id, field, secret) for field, secret in secrets.items()}
        return accounts.connect_imap_account(account_id, address, servers, sealed, signed, clock())

    return await with_newest_key(database, storing)
