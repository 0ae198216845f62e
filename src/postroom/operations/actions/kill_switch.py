"""The kill switch: stop all changes to mailboxes, everywhere or in one account, and allow them again."""

from postroom.operations.accounts.accounts import find_account
from postroom.operations.actions.pausing import Stopped, stop
from postroom.operations.caller import Caller
from postroom.store.actions import pauses
from postroom.store.engine.database import Database
from postroom.triage.act.approval_notice import cause_of
from postroom.words.jobs import WAITING_WORK


async def pause_changes(by: Caller, account: str | None, reason: str) -> Stopped:
    """Pause. When this returns, no process changes or sends anything more."""
    return await stop(by, await _scope(by.database, account), reason)


async def resume_changes(by: Caller, account: str | None) -> int | None:
    """Resume. Return how many waiting jobs continue; None if nothing was paused."""
    return await by.run(pauses.resume(await _scope(by.database, account), by.signature, by.clock()))


async def released_by_resuming(database: Database, account: str | None) -> list[str] | None:
    """Say what would begin if the pause ended now, line by line; None if there is no such pause."""
    scope = await _scope(database, account)
    if not await database.run(pauses.is_paused(scope)):
        return None
    return [_in_words(each) for each in await database.run(pauses.waiting_work(scope))]


def _in_words(waiting: pauses.WaitingWork) -> str:
    if waiting.actor is not None:
        what = waiting.kind.replace("_", " ")
        return f"{waiting.number:,} × {what}, asked for by {cause_of(waiting.actor, waiting.agent)}"
    return f"{waiting.number:,} × {WAITING_WORK.get(waiting.kind, waiting.kind)}"


async def _scope(database: Database, account: str | None) -> str:
    return pauses.ALL if account is None else str((await find_account(database, account)).id)
