"""The `history.sync.gmail` job: ask an account's connector to check its mailbox now, wherever it runs.

The connector checks by itself every few seconds. This is for a check at once whose result should be known: it is
retried, parked if consent is lost, and shown like all other jobs.
"""

from datetime import timedelta

from postroom.jobs.run import JobRun
from postroom.store.engine.database import Database
from postroom.system.wall_clock import Clock, wall_clock
from postroom.triage.handlers.asking import PATIENCE, AskingConnector
from postroom.triage.handlers.payload import uuid_field


class HistorySyncGmail:
    """Ask, and wait for the answer."""

    def __init__(self, database: Database, clock: Clock = wall_clock, patience: timedelta = PATIENCE) -> None:
        self._asking = AskingConnector(database, clock, patience)

    async def __call__(self, run: JobRun) -> None:
        await self._asking.ask(uuid_field(run.job, "account_id"), "sync_now", {})
