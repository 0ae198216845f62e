"""The `history.sync.gmail` job: has the connector of an account look at its mailbox now, wherever that connector runs.

The connector looks by itself every few seconds; this is for those who want a look at once and want to know what came
of it: it is retried, parked when consent is lost, and shown like all other work.
"""

from datetime import timedelta

from postroom.handlers.asking import PATIENCE, AskingConnector
from postroom.handlers.payload import uuid_field
from postroom.jobs.run import JobRun
from postroom.store.engine.clock import Clock, wall_clock
from postroom.store.engine.database import Database


class HistorySyncGmail:
    """Asks, and waits for the answer."""

    def __init__(self, database: Database, clock: Clock = wall_clock, patience: timedelta = PATIENCE) -> None:
        self._asking = AskingConnector(database, clock, patience)

    async def __call__(self, run: JobRun) -> None:
        await self._asking.ask(uuid_field(run.job, "account_id"), "sync_now", {})
