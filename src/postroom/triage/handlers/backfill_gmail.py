"""The `backfill.gmail` job: ask an account's connector to work on its backfills for a slice, wherever it runs.

The connector says when to go on. Then the job is completed and the next one enqueued, in one transaction and under the
same key; so attempts count per slice, and each account has one such job at most. Without work there is no next one.
"""

from datetime import timedelta

from postroom.core.jobs.types import CATALOGUE
from postroom.core.mail.mailbox_requests import LONGEST_SLICE_S
from postroom.jobs.run import JobRun
from postroom.store.engine.clock import Clock, wall_clock
from postroom.store.engine.database import Database
from postroom.store.jobs.job_builders import backfill_job
from postroom.store.jobs.jobs import complete_and_enqueue
from postroom.triage.handlers.asking import PATIENCE, AskingConnector
from postroom.triage.handlers.payload import uuid_field

LONGEST_PAUSE_S = 3600.0


class BackfillGmail:
    """Ask for one slice, and enqueue the next."""

    def __init__(self, database: Database, clock: Clock = wall_clock, patience: timedelta = PATIENCE) -> None:
        self._asking = AskingConnector(database, clock, patience)
        self._clock = clock

    async def __call__(self, run: JobRun) -> None:
        account_id = uuid_field(run.job, "account_id")
        answer = await self._asking.ask(account_id, "backfill", {"seconds": LONGEST_SLICE_S})
        pause = _pause(answer.get("again_in_s"))
        if pause is not None:
            now = self._clock()
            following = backfill_job(CATALOGUE, account_id, None if not pause else now + pause)
            await run.complete(complete_and_enqueue(run.job, following, now))


def _pause(again_in_s: object) -> timedelta | None:
    """How long to wait before the next slice; None if there is no work, or the answer is not one of ours."""
    if isinstance(again_in_s, bool) or not isinstance(again_in_s, int | float) or not again_in_s >= 0:
        return None
    return timedelta(seconds=min(float(again_in_s), LONGEST_PAUSE_S))
