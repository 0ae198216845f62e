"""The kill switch: stop all changes to mailboxes, everywhere or in one account, and allow them again."""

from postroom.manage.accounts import find_account
from postroom.manage.pausing import Stopped, stop
from postroom.store import pauses
from postroom.store.audit import Signature
from postroom.store.engine.clock import Clock, wall_clock
from postroom.store.engine.database import Database


async def pause_changes(
    database: Database, account: str | None, reason: str, signed: Signature, clock: Clock = wall_clock
) -> Stopped:
    """Pause. When this returns, no process changes or sends anything more."""
    return await stop(database, await _scope(database, account), reason, signed, clock)


async def resume_changes(
    database: Database, account: str | None, signed: Signature, clock: Clock = wall_clock
) -> int | None:
    """Resume. Return how many waiting jobs continue; None if nothing was paused."""
    return await database.run(pauses.resume(await _scope(database, account), signed, clock()))


async def _scope(database: Database, account: str | None) -> str:
    return pauses.ALL if account is None else str((await find_account(database, account)).id)
