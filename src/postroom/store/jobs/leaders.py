"""Leadership: one holder per name, for as long as it renews its lease."""

from datetime import datetime, timedelta
from typing import NamedTuple

from postroom.store.engine.codecs import as_time
from postroom.store.engine.database import Script, query, sql, transaction

# A leader checks every few seconds, and is replaced within fifteen.
NEGLECTED_AFTER = timedelta(minutes=2)


class OverdueWork(NamedTuple):
    """Work that a leader would have done long ago."""

    due_jobs: int
    """Jobs that became due more than NEGLECTED_AFTER ago; at most a thousand are counted."""
    dead_workers: int
    """Expired leases that still hold work."""

    def __bool__(self) -> bool:
        return any(self)


@transaction
def lead(name: str, holder: str, now: datetime, until: datetime) -> Script[bool]:
    """Become or stay the leader, unless another holder leads.

    No lease is longer than `until`: one written by a clock that was ahead is cut to that.
    """
    if (yield sql("take_leadership", name, holder, until, now)):
        return True
    yield sql("shorten_leadership", name, until)
    return False


@transaction
def resign(name: str, holder: str) -> Script[None]:
    """Stop leading, so that another can begin at once."""
    yield sql("resign_leadership", name, holder)


@query
def leader(name: str) -> Script[tuple[str, datetime, int] | None]:
    """The leader, the end of its lease, and its term."""
    rows = yield sql("select_leader", name)
    return (rows[0][0], as_time(rows[0][1]), rows[0][2]) if rows else None


@query
def overdue_work(now: datetime) -> Script[OverdueWork]:
    """The work that is not being done: there is no leader, or its clock is wrong."""
    ((due_jobs, dead_workers),) = yield sql("count_neglected", now - NEGLECTED_AFTER)
    return OverdueWork(due_jobs, dead_workers)
