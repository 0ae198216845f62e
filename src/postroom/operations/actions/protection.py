"""Senders, domains and labels whose mail is never changed."""

from postroom.core.actions.safety import ProtectedKind
from postroom.core.errors import NotFound
from postroom.operations.actions.pausing import forbid_and_wait
from postroom.operations.caller import Caller
from postroom.store.actions import protection
from postroom.store.actions.protection import ProtectedView
from postroom.store.engine.database import Database

__all__ = ["ProtectedView", "list_protected", "protect", "unprotect"]


async def list_protected(database: Database) -> list[ProtectedView]:
    return await database.run(protection.list_protected())


async def protect(by: Caller, kind: ProtectedKind, value: str, reason: str) -> str:
    """Protect it; return the value in its normalized form. When this returns, no process changes its mail."""
    return await forbid_and_wait(by.database, protection.protect(kind, value, reason, by.signature, by.clock()))


async def unprotect(by: Caller, kind: ProtectedKind, value: str) -> None:
    if not await by.run(protection.unprotect(kind, value, by.signature, by.clock())):
        raise NotFound(f"the {kind} {value!r} is not protected; `postroom protect list` lists what is")
