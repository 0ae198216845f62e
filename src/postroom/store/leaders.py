"""Who leads: one holder per name, for as long as it renews its lease."""

from datetime import datetime, timedelta
from typing import NamedTuple

from postroom.store.engine.codecs import as_time
from postroom.store.engine.database import Script, query, sql, transaction

# A leader looks every few seconds, and is replaced within fifteen.
NEGLECTED_AFTER = timedelta(minutes=2)


class OverdueWork(NamedTuple):
    """Work that a leader would long have seen to."""

    due_jobs: int
    """Whose time came more than NEGLECTED_AFTER ago; a thousand stands for more."""
    dead_workers: int
    """That still hold work."""

    def __bool__(self) -> bool:
        return any(self)


@transaction
def lead(name: str, holder: str, now: datetime, until: datetime) -> Script[bool]:
    """Becomes or stays the leader, unless someone else is.

    Nobody leads beyond the length of a lease, `until`: what a clock that was ahead has written is cut to that.
    """
    if (yield sql("take_leadership", name, holder, until, now)):
        return True
    yield sql("shorten_leadership", name, until)
    return False


@transaction
def resign(name: str, holder: str) -> Script[None]:
    """Stops leading, so that another can begin at once."""
    yield sql("resign_leadership", name, holder)


@query
def leader(name: str) -> Script[tuple[str, datetime, int] | None]:
    """Who leads, until when, and in which term."""
    rows = yield sql("select_leader", name)
    return (rows[0][0], as_time(rows[0][1]), rows[0][2]) if rows else None


@query
def neglected(now: datetime) -> Script[OverdueWork]:
    """What nobody has seen to: there is no leader, or it goes by a wrong clock."""
    ((due_jobs, dead_workers),) = yield sql("count_neglected", now - NEGLECTED_AFTER)
    return OverdueWork(due_jobs, dead_workers)
