"""The kill switch: stops every change to mailboxes, everywhere or in one account, and lets them go on."""

from postroom.manage.accounts import find_account
from postroom.manage.pausing import Stopped, stop
from postroom.store import pauses
from postroom.store.audit import Signature
from postroom.store.engine.clock import Clock, wall_clock
from postroom.store.engine.database import Database


async def pause_changes(
    database: Database, account: str | None, reason: str, signed: Signature, clock: Clock = wall_clock
) -> Stopped:
    """Once this answers, nothing more is changed or sent by any process."""
    return await stop(database, await _scope(database, account), reason, signed, clock)


async def resume_changes(
    database: Database, account: str | None, signed: Signature, clock: Clock = wall_clock
) -> int | None:
    """How many jobs that waited go on; None when nothing was paused."""
    return await database.run(pauses.resume(await _scope(database, account), signed, clock()))


async def _scope(database: Database, account: str | None) -> str:
    return pauses.ALL if account is None else str((await find_account(database, account)).id)
