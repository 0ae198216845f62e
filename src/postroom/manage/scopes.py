"""Whose mail a rule or guidance is for."""

from postroom.manage.accounts import find_account
from postroom.store.engine.database import Database


async def scope_ref(database: Database, scope: str, given: str | None) -> str | None:
    """What the scope is about, as it is kept: an account by its id."""
    return str((await find_account(database, given)).id) if scope == "account" and given else given
