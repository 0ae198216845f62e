"""The `backfill.gmail` job: call an account's connector to its backfills, wherever it runs.

The connector works on them by itself, for hours or days, and what it has done is in the backfill (`store/backfill`).
This lets it begin at once: it is retried, parked if consent is lost, and shown like all other jobs.
"""

from datetime import timedelta

from postroom.jobs.run import JobRun
from postroom.store.engine.database import Database
from postroom.system.wall_clock import Clock, wall_clock
from postroom.triage.handlers.asking import PATIENCE, AskingConnector
from postroom.triage.handlers.payload import uuid_field


class BackfillGmail:
    """Call, and wait for the answer."""

    def __init__(self, database: Database, clock: Clock = wall_clock, patience: timedelta = PATIENCE) -> None:
        self._asking = AskingConnector(database, clock, patience)

    async def __call__(self, run: JobRun) -> None:
        await self._asking.ask(uuid_field(run.job, "account_id"), "backfill", {})
