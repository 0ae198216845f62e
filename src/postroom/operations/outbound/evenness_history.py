"""How evenly tenants were served, hour by hour. Hours that are over do not change, so they are computed once."""

from datetime import datetime, timedelta
from typing import NamedTuple

from postroom.store.engine.database import Database
from postroom.store.installation.rollups import hour_of
from postroom.store.outbound.outbound_views import EvennessHour, evenness_hours
from postroom.store.outbound.sender_counts import next_hour

SETTLED = timedelta(minutes=5)
"""How long after its end an hour may still change: what began in it may be committed later."""


class _Kept(NamedTuple):
    """Hours that are over: all of those from the first moment to before the last."""

    start: datetime
    end: datetime
    hours: list[EvennessHour]


class EvennessHistory:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._kept: _Kept | None = None

    async def since(self, start: datetime, now: datetime) -> list[EvennessHour]:
        """The hours from this one on in which somebody was served, oldest first."""
        kept = self._kept
        if kept is None or not kept.start <= start <= kept.end:
            kept = _Kept(start, start, [])
        found = await self._database.run(evenness_hours(kept.end, next_hour(now)))
        over = max(kept.end, hour_of(now - SETTLED))
        self._kept = _Kept(kept.start, over, [*kept.hours, *(each for each in found if each.hour < over)])
        return [each for each in (*kept.hours, *found) if each.hour >= start]
