"""A stored password that is not the mailbox's any more."""

from dataclasses import replace
from pathlib import Path

from postroom.operations.accounts.connecting_imap import connect_imap, imap_account
from postroom.operations.caller import Caller
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import FILE
from postroom.store.engine.sqlite import SqliteDatabase
from postroom.store.people.audit import Signature
from postroom.system.wall_clock import wall_clock
from postroom.vault.sealing import Vault


async def store_password(data: Path, email: str, password: str) -> None:
    """As if the owner had changed the password at the provider: the stored one is wrong from now on."""
    database = SqliteDatabase(data / FILE)
    try:
        account = await imap_account(database, email)
        assert account is not None
        assert account.servers is not None
        servers, signed = replace(account.servers, given_at=wall_clock()), Signature(new_id(), "test", "cli")
        await connect_imap(Caller(database, signed), Vault(data), email, servers, password)
    finally:
        await database.close()
