"""Counts by hour, summed up once their time is over, so that what shows weeks reads few rows.

Nothing is lost by it: the counts by hour stay, and whatever is not summed up yet is read from them. A step that is
summed up is summed up again with the next one, so that counts that were committed late are in it too.
"""

from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

from postroom.store.engine.codecs import as_time
from postroom.store.engine.database import Script, sql, transaction

FoldName = Literal["rollups", "outbound", "evenness"]
HOUR = timedelta(hours=1)
STEPS: dict[FoldName, timedelta] = {"rollups": 6 * HOUR, "outbound": 24 * HOUR, "evenness": HOUR}
"""How much time is summed up to one: the counts of what came in and of jobs, of outgoing mail, and its evenness."""
SETTLED = timedelta(minutes=15)
"""How long after its end a time may still get counts: what began in it may be committed later."""
LONGEST_SHOWN = timedelta(days=32)
"""Older counts are shown nowhere, and an upgrade does not sum them up."""
_FIRST = datetime(2000, 1, 1, tzinfo=UTC)
_EARLIEST: dict[FoldName, str] = {
    "rollups": "select_first_rollups",
    "outbound": "select_first_outbound",
    "evenness": "select_first_outbound",
}


class FoldedPart(NamedTuple):
    """The part of a window that is summed up; empty if it ends where it begins."""

    begin: datetime
    end: datetime


def floored(moment: datetime, step: timedelta) -> datetime:
    return moment - (moment - _FIRST) % step


def folded_part(name: FoldName, since: datetime, until: datetime) -> Script[FoldedPart]:
    """Part of a query: which whole steps of the window are summed up. Without any, it is empty and at its beginning."""
    rows, step = (yield sql("select_fold", name)), STEPS[name]
    if rows:
        first, last = as_time(rows[0][0]), as_time(rows[0][1])
        begin, end = _ceiling(max(since, first), step), floored(min(until, last), step)
        if begin < end:
            return FoldedPart(begin, end)
    return FoldedPart(since, since)


def _ceiling(moment: datetime, step: timedelta) -> datetime:
    return moment + (_FIRST - moment) % step


@transaction
def fold_next(name: FoldName, now: datetime) -> Script[bool]:
    """Sum up the next step that is over, and the one before it again; False if there is none."""
    step = STEPS[name]
    rows = yield sql("select_fold", name)
    if not rows:
        ((earliest,),) = yield sql(_EARLIEST[name])
        if earliest is None:
            return False
        first = floored(max(as_time(earliest), now - LONGEST_SHOWN), step)
        yield sql("insert_fold", name, first)
        rows = yield sql("select_fold", name)
    since, start = as_time(rows[0][0]), as_time(rows[0][1])
    until = start + step
    if until > (yield from _settled_until(name, now)) or not (yield sql("move_fold", name, start, until)):
        return False
    for each in (start - step, start):
        if each >= since:
            yield sql(f"forget_{name}", each)
            yield sql(f"fold_{name}", each, each + step)
    return True


def _settled_until(name: FoldName, now: datetime) -> Script[datetime]:
    """Until when all counts are there. Ended jobs are counted later than the rest."""
    settled = now - SETTLED
    if name == "rollups":
        for (counted,) in (yield sql("select_counted_until")):
            settled = min(settled, as_time(counted))
    return settled
