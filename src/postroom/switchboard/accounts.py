"""Connects accounts, removes them, and passes their secrets on from one key to the next."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from postroom.core.accounts import one_spelling
from postroom.core.errors import BadInput, Conflict, KeyDropped, NotFound, VaultError
from postroom.gmail.errors import GmailError
from postroom.gmail.oauth import ConsentRefused, GoogleOAuth, Grant
from postroom.gmail.scopes import Level, granted_level
from postroom.pausing import forbid
from postroom.store import accounts, secret_keys
from postroom.store.accounts import REFRESH_TOKEN, AccountView, Consent
from postroom.store.audit import Signature
from postroom.store.clock import Clock
from postroom.store.database import Database, Transaction
from postroom.store.ids import new_id
from postroom.store.secret_keys import Resealed, StoredSecret
from postroom.vault import Vault

BATCH = 50
MOST_ROUNDS = 20

T = TypeVar("T")
Sign = Callable[[], Signature]


@dataclass(frozen=True, slots=True)
class Resealing:
    """What a rotation did: the key that seals now, how many secrets it took over, and which it could not open."""

    key_id: str
    resealed: int
    unopened: tuple[UUID, ...]


async def gmail_account(database: Database, email: str) -> AccountView | None:
    """The Gmail account of an address, in whatever spelling, if there ever was one."""
    found = await database.run(accounts.accounts_with_address(one_spelling(email)))
    return next((account for account in found if account.provider == "gmail"), None)


async def find_account(database: Database, name: str) -> AccountView:
    """The account that a person means: by its id, or by its address."""
    try:
        return await database.run(accounts.load_account(UUID(name)))
    except ValueError:
        pass
    try:
        found = await database.run(accounts.accounts_with_address(one_spelling(name)))
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
    secret, address = grant.refresh_token, one_spelling(email)

    def storing() -> Transaction[AccountView]:
        sealed = vault.seal(account_id, REFRESH_TOKEN, secret)
        return accounts.connect_account(account_id, address, consent, sealed, signed, now)

    return await with_newest_key(database, storing)


async def with_newest_key(database: Database, storing: Callable[[], Transaction[T]]) -> T:
    """Seals and stores. A key that was dropped between the two was the last one but not the newest: seal again."""
    for _ in range(MOST_ROUNDS):
        with contextlib.suppress(KeyDropped):
            return await database.run(storing())
    return await database.run(storing())


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


async def reseal_all(database: Database, vault: Vault, key_id: str, clock: Clock) -> Resealing:
    """Seals everything with this key, in small transactions beside whatever else goes on.

    A secret that is replaced meanwhile is looked at again. One that does not open is left as it is, and named.
    """
    resealed, unopened = 0, dict[UUID, None]()
    for _ in range(MOST_ROUNDS):
        after, missed = None, 0
        while found := await database.run(secret_keys.sealed_by_others(key_id, after, BATCH)):
            changes = [change for each in found if (change := _resealed(vault, each, unopened)) is not None]
            done = await database.run(secret_keys.reseal(changes, clock())) if changes else 0
            resealed, missed, after = resealed + done, missed + len(changes) - done, found[-1]
        if not missed:
            break
    return Resealing(key_id, resealed, tuple(unopened))


async def drop_other_keys(database: Database, vault: Vault, key_id: str, clock: Clock, sign: Sign) -> list[str]:
    """Forgets every key but this one: first the database takes nothing under it any more, then it leaves the file.

    Whoever had sealed with an old key and stores that only now is waited for, by sealing it anew.
    """
    old = [key.id for key in vault.known_keys() if key.id != key_id]
    for id in old:
        for round in range(MOST_ROUNDS):
            try:
                await database.run(secret_keys.drop_key(id, sign(), clock()))
                break
            except Conflict:
                done = await reseal_all(database, vault, key_id, clock)
                if done.unopened or round == MOST_ROUNDS - 1:
                    raise
    vault.drop_keys(old)
    return old


def _resealed(vault: Vault, stored: StoredSecret, unopened: dict[UUID, None]) -> Resealed | None:
    try:
        secret = vault.open(stored.sealed, stored.account_id, stored.field)
    except VaultError:
        unopened[stored.account_id] = None
        return None
    return Resealed(stored, vault.seal(stored.account_id, stored.field, secret))
