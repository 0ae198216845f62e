"""Accounts of tests that act at once, as an owner who has said so: on all mail, old and new."""

import asyncio
from pathlib import Path

from postroom.core.mail.accounts import endpoint_of
from postroom.store.accounts.accounts import act_from, list_accounts
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import open_database
from postroom.store.mail.mail import ACTS_ON_ALL, keep_account
from postroom.store.people.audit import Signature
from postroom.system.wall_clock import wall_clock


async def act_on_all_mail(database: Database) -> None:
    """Every account acts on all its mail from now on."""
    for each in await database.run(list_accounts()):
        signed = Signature(new_id(), "test", "admin")
        await database.run(act_from(each.id, ACTS_ON_ALL, signed, wall_clock()))


async def keep_acting_account(database: Database, email: str) -> None:
    """The Gmail account of this address exists and acts, before `serve` would create it."""
    await database.run(keep_account(new_id(), "gmail", endpoint_of("gmail", email), email, wall_clock()))
    await act_on_all_mail(database)


def acting_account_in(folder: Path, email: str, url: str | None = None) -> None:
    """The same in a data folder that no process uses yet, or in the PostgreSQL database at an address."""

    async def keep() -> None:
        database = await open_database(folder, url)
        try:
            await keep_acting_account(database, email)
        finally:
            await database.close()

    asyncio.run(keep())
