"""The scope of a rule or guidance: the mail it applies to."""

from typing import Annotated

from postroom.operations.accounts.accounts import find_account
from postroom.operations.operation import Argument
from postroom.store.engine.database import Database

SCOPE = "Which mail it applies to: global, account, domain or sender."
SCOPE_REF = "The account (id or address), domain or sender of the scope."
Scope = Annotated[str | None, Argument(SCOPE)]
ScopeRef = Annotated[str | None, Argument(SCOPE_REF, typed_as="--for WHOM")]


async def scope_ref(database: Database, scope: str, given: str | None) -> str | None:
    """Return the scope's reference as it is stored: an account by its id."""
    return str((await find_account(database, given)).id) if scope == "account" and given else given
