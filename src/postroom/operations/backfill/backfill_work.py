"""Hands backfills to connectors, records their progress, and starts capped ones again on a new day."""

from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

import structlog

from postroom.core.backfill.job import BackfillJob, Progress
from postroom.core.errors import IllegalMove
from postroom.core.queue.queues import QueuePolicy
from postroom.operations.backfill.backfill import Backfills
from postroom.operations.people.audit import Signature, signature
from postroom.store.backfill import backfill_spend
from postroom.store.backfill.backfill_work import hand_out, record_progress
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.system.wall_clock import Clock

log = structlog.get_logger()


class BackfillState(NamedTuple):
    """A job as its connector needs it: `wait` is how long to wait before the next message."""

    job: BackfillJob
    live_backlog: bool
    wait: timedelta


class BackfillWork:
    """The work on backfills, for connectors."""

    def __init__(self, database: Database, backfills: Backfills, policy: QueuePolicy, clock: Clock) -> None:
        """`policy` is that of the queue of mail: background jobs wait while live mail waits there."""
        self._database = database
        self._backfills = backfills
        self._policy = policy
        self._clock = clock

    async def poll(
        self, connector_type: str, endpoint_identity: str, signed: Signature, held: UUID | None = None
    ) -> BackfillState | None:
        """The next job of a mailbox, leased to the caller; None if there is none. `held` is the lease that the caller
        had before it was started again.
        """
        now = self._clock()
        day = self._backfills.day(now)
        found = await self._database.run(
            hand_out(connector_type, endpoint_identity, new_id(), self._policy, day, now, signed, held)
        )
        return None if found is None else self._state(found.job, found.live_backlog)

    async def progress(self, id: UUID, progress: Progress, signed: Signature) -> BackfillState:
        """Record a report; the status of the job that is returned is the truth."""
        now = self._clock()
        day, zone = self._backfills.day(now), self._backfills.zone
        reported = await self._database.run(record_progress(id, progress, self._policy, zone, day, now, signed))
        return self._state(reported.job, reported.live_backlog)

    async def begin_day(self) -> None:
        """Let capped jobs that ask for it continue on a new day, and release mail that waited for it."""
        now = self._clock()
        day = self._backfills.day(now)
        for id in await self._database.run(backfill_spend.capped_backfills(day)):
            signed = signature("process:keeper", "worker", "a new day has begun")
            try:
                await self._database.run(backfill_spend.continue_capped(id, day, now, signed))
            except IllegalMove:
                continue
            log.info("backfill.continued", backfill=str(id))
        for id in await self._database.run(backfill_spend.held_backfills(day)):
            await self._database.run(backfill_spend.release_held(id, now))

    def _state(self, job: BackfillJob, live_backlog: bool) -> BackfillState:
        due = job.paced_until
        wait = timedelta(0) if due is None else max(timedelta(0), due - self._clock())
        return BackfillState(job, live_backlog, min(wait, timedelta(hours=1)))
