"""Senders, domains and labels whose mail is never changed."""

from postroom.core.actions.safety import ProtectedKind
from postroom.core.errors import NotFound
from postroom.operations.actions.pausing import forbid_and_wait
from postroom.store.actions import protection
from postroom.store.actions.protection import ProtectedView
from postroom.store.engine.clock import Clock, wall_clock
from postroom.store.engine.database import Database
from postroom.store.people.audit import Signature

__all__ = ["ProtectedView", "list_protected", "protect", "unprotect"]


async def list_protected(database: Database) -> list[ProtectedView]:
    return await database.run(protection.list_protected())


async def protect(
    database: Database, kind: ProtectedKind, value: str, reason: str, signed: Signature, clock: Clock = wall_clock
) -> str:
    """Protect it; return the value in its normalized form. When this returns, no process changes its mail."""
    return await forbid_and_wait(database, protection.protect(kind, value, reason, signed, clock()))


async def unprotect(
    database: Database, kind: ProtectedKind, value: str, signed: Signature, clock: Clock = wall_clock
) -> None:
    if not await database.run(protection.unprotect(kind, value, signed, clock())):
        raise NotFound(f"the {kind} {value!r} is not protected; `postroom protect list` lists what is")
