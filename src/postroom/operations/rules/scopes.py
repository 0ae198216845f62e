"""The scope of a rule or guidance: the mail it applies to."""

from postroom.operations.accounts.accounts import find_account
from postroom.store.engine.database import Database


async def scope_ref(database: Database, scope: str, given: str | None) -> str | None:
    """Return the scope's reference as it is stored: an account by its id."""
    return str((await find_account(database, given)).id) if scope == "account" and given else given
