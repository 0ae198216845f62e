"""The kill switch: while a pause stands, nothing is changed in any mailbox, or in that of one account.

It is read where work begins, and once more when a request is about to leave (`departures`). Jobs that meet it wait
under its key without using up attempts, and go on by themselves when it ends. To pause and know that nothing can leave
any more, use `pausing.stop`.
"""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from postroom.core.errors import Parked
from postroom.store.audit import Signature, auditing
from postroom.store.engine.codecs import as_time
from postroom.store.engine.database import Notify, Script, query, sql, transaction
from postroom.store.engine.reading import read_rows
from postroom.store.jobs import PAUSE, unpark

CHANNEL = "pauses"
ALL = "all"


@dataclass(frozen=True, slots=True)
class Pause:
    """What stands still, why, by whose wish and since when. The scope is `all` or an account's id."""

    scope: str
    reason: str
    set_by: str
    since: datetime


@transaction
def pause(scope: str, reason: str, signed: Signature, now: datetime) -> Script[Pause]:
    """From here on nothing begins."""
    yield from recalling(scope)
    rows = yield sql("insert_pause", scope, reason, signed.actor, now)
    yield from auditing(signed.under("mutations.pause", "pause", scope, after={"reason": reason}), now)
    return Pause(scope, reason, signed.actor, as_time(rows[0][0]))


def recalling(scope: str) -> Script[None]:
    """Part of a transaction that forbids something: every process has to ask anew before another request leaves.

    It comes first, see `departures`. `pausing.recalled` waits until all have.
    """
    yield sql("await_no_departure")
    yield sql("raise_pause_generation")
    yield Notify(CHANNEL, scope)


@transaction
def resume(scope: str, signed: Signature, now: datetime) -> Script[int | None]:
    """Ends the pause; returns how many jobs go on, None when there was no pause."""
    if not (yield sql("delete_pause", scope)):
        return None
    yield sql("raise_pause_generation")
    released = yield from unpark.script(f"{PAUSE}{scope}", now)
    yield from auditing(signed.under("mutations.resume", "pause", scope, after={"released": released}), now)
    yield Notify(CHANNEL, scope)
    return released


@query
def standing_pauses() -> Script[list[Pause]]:
    return read_rows(Pause, (yield sql("select_pauses")))


def unless_paused(account_id: UUID) -> Script[None]:
    """Part of a transaction that begins a change: raises Parked while a pause stands."""
    for scope, reason in (yield sql("select_pauses_of", str(account_id))):
        raise Parked(f"{PAUSE}{scope}", f"Postroom is paused: {reason}; `postroom resume` lets it go on")


@query
def check_paused(account_id: UUID) -> Script[None]:
    """Raises Parked while a pause stands: for a change that has no record of its own to begin."""
    yield from unless_paused(account_id)
