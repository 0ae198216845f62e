"""Connects accounts, finds and removes them."""

from datetime import datetime
from uuid import UUID

from postroom.accounts.sealing import with_newest_key
from postroom.core.errors import BadInput, Conflict, NotFound, VaultError
from postroom.core.mail.accounts import normalised_address
from postroom.gmail.errors import GmailError
from postroom.gmail.oauth import ConsentRefused, GoogleOAuth, Grant
from postroom.gmail.scopes import Level, granted_level
from postroom.manage.pausing import forbid
from postroom.store import accounts, secret_keys
from postroom.store.accounts import REFRESH_TOKEN, AccountView, Consent
from postroom.store.audit import Signature
from postroom.store.engine.database import Database, Transaction
from postroom.store.engine.ids import new_id
from postroom.vault.sealing import Vault


async def gmail_account(database: Database, email: str) -> AccountView | None:
    """The Gmail account of an address, in whatever spelling, if there ever was one."""
    found = await database.run(accounts.accounts_with_address(normalised_address(email)))
    return next((account for account in found if account.provider == "gmail"), None)


async def find_account(database: Database, name: str) -> AccountView:
    """The account that a person means: by its id, or by its address."""
    try:
        return await database.run(accounts.load_account(UUID(name)))
    except ValueError:
        pass
    try:
        found = await database.run(accounts.accounts_with_address(normalised_address(name)))
    except BadInput:
        found = []
    if not found:
        raise NotFound(f"there is no account {name}; `postroom account list` shows those there are")
    if len(found) > 1:
        ids = ", ".join(str(account.id) for account in found)
        raise Conflict("account", f"several have the address {name}", f"name one by its id: {ids}")
    return found[0]


async def connect(
    database: Database,
    vault: Vault,
    grant: Grant,
    email: str,
    client_id: str,
    signed: Signature,
    now: datetime,
) -> AccountView:
    """Keeps what Google granted, for the account that the mailbox has, or for a new one.

    A consent that does not even allow reading is refused.
    """
    level: Level | None = granted_level(grant.scopes)
    if grant.refresh_token is None:
        raise ConsentRefused("Google gave no refresh token; remove Postroom at myaccount.google.com, and start again")
    if level is None:
        raise ConsentRefused("reading was not granted; start again, and leave every box on Google's page ticked")
    found = await gmail_account(database, email)
    account_id = new_id() if found is None else found.id
    uses = await database.run(secret_keys.list_key_uses())
    vault.prepare([use.id for use in uses if use.secrets], now)
    dies_at = None if grant.dies_in is None else now + grant.dies_in
    consent = Consent(client_id, level, grant.scopes, now, dies_at=dies_at)
    secret, address = grant.refresh_token, normalised_address(email)

    def storing() -> Transaction[AccountView]:
        sealed = vault.seal(account_id, REFRESH_TOKEN, secret)
        return accounts.connect_account(account_id, address, consent, sealed, signed, now)

    return await with_newest_key(database, storing)


async def remove(
    database: Database, vault: Vault, oauth: GoogleOAuth | None, account: AccountView, signed: Signature, now: datetime
) -> bool:
    """Wipes the account's secrets, then ends its consent at Google. False when that last part did not succeed."""
    sealed = (await database.run(accounts.held_by(account.id))).sealed
    try:
        secret = None if sealed is None else vault.open(sealed, account.id, REFRESH_TOKEN)
    except VaultError:
        secret = None
    await forbid(database, accounts.remove_account(account.id, signed, now))
    if sealed is None:
        return True
    if oauth is None or secret is None:
        return False
    try:
        await oauth.revoke(secret)
    except GmailError:
        return False
    return True
