"""Wakes sleeping jobs when they are due, and enqueues recurring ones, once per tick."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog
from cronsim import CronSim, CronSimError

from postroom.core.errors import BadInput
from postroom.core.jobs.job import NewJob
from postroom.core.jobs.types import Catalogue
from postroom.store.engine.codecs import from_json, json_text
from postroom.store.engine.database import Database
from postroom.store.jobs import jobs as store
from postroom.store.jobs import schedules
from postroom.store.jobs.new_jobs import new_job
from postroom.system.wall_clock import Clock, wall_clock

log = structlog.get_logger()

WAKE_BATCH = 1000


async def _none_in_use() -> Sequence[UUID]:
    return ()


@dataclass(frozen=True, slots=True)
class Recurring:
    """A job on a schedule: `cron` has five fields, in UTC. `each_account` creates one for each account in use."""

    name: str
    cron: str
    type: str
    payload: Mapping[str, Any] = field(default_factory=dict[str, Any])
    priority: int = 0
    each_account: Callable[[UUID], NewJob] | None = None


@dataclass(eq=False, slots=True)
class Scheduler:
    """Wakes and enqueues what is due. Called by the leader; two at once do no harm."""

    database: Database
    catalogue: Catalogue
    recurring: Sequence[Recurring] = ()
    clock: Clock = wall_clock
    accounts_in_use: Callable[[], Awaitable[Sequence[UUID]]] = _none_in_use

    async def begin(self) -> None:
        """Store the recurring jobs that this version knows."""
        now = self.clock()
        kept = [
            schedules.Schedule(
                each.name,
                each.cron,
                self.catalogue[each.type].name,
                json_text(dict(each.payload)),
                each.priority,
                next_tick(each.cron, now),
            )
            for each in self.recurring
        ]
        await self.database.run(schedules.keep_schedules(kept))

    async def tick(self) -> datetime | None:
        """Do all that is due now; return the time at which something is due next."""
        while await self.database.run(store.wake_due(self.clock(), WAKE_BATCH)) == WAKE_BATCH:
            pass
        for schedule in await self.database.run(schedules.due_schedules(self.clock())):
            await self._fire(schedule)
        times = [await self.database.run(store.next_due()), await self.database.run(schedules.next_schedule())]
        return min((time for time in times if time is not None), default=None)

    async def _fire(self, schedule: schedules.Schedule) -> None:
        """Enqueue its jobs once, however many ticks were missed while there was no leader."""
        jobs, now = await self._jobs_of(schedule), self.clock()
        fired = await self.database.run(schedules.fire(schedule, jobs, next_tick(schedule.cron, now), now))
        if fired is not None and any(each.duplicate for each in fired):
            log.info("schedule.still_running", schedule=schedule.name)

    async def _jobs_of(self, schedule: schedules.Schedule) -> list[NewJob]:
        for each in self.recurring:
            if each.name == schedule.name and each.each_account is not None:
                return [each.each_account(id) for id in await self.accounts_in_use()]
        kind = self.catalogue[schedule.type]
        key = f"recurring:{schedule.name}" if _is_while_live(self.catalogue, kind.name) else None
        payload = from_json(schedule.payload_json)
        return [new_job(self.catalogue, kind.name, payload, key=key, priority=schedule.priority)]


def next_tick(cron: str, after: datetime) -> datetime:
    """The next time that matches the expression, strictly after `after`."""
    try:
        return next(CronSim(cron, after))
    except (CronSimError, StopIteration) as error:
        remedy = "use five fields, such as '0 * * * *' for every hour"
        raise BadInput("cron", f"{cron!r} is not a cron expression that ever fires ({error})", remedy) from None


def _is_while_live(catalogue: Catalogue, type: str) -> bool:
    return catalogue[type].key_lifetime.value == "while_live"
