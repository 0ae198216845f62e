"""The work that the chaos suite has done: job types whose every effect leaves a trace that can be counted.

    letter        three named steps, then ended by the worker's grouped finish
    parcel        two named steps, then its effect and its end in one transaction
    refused       fails once, and is tried again
    undeliverable fails for good
    errand        holds its key while it lives
    tick          what the schedule fires; effect and end in one transaction

Each step's body writes a line into a log with O_APPEND, which survives SIGKILL.
"""

import asyncio
import os
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

from postroom.core.errors import Fatal, Retryable
from postroom.core.jobs.job import Job
from postroom.core.jobs.retry import RetryPolicy
from postroom.core.jobs.types import Catalogue, JobType, KeyLifetime
from postroom.jobs.run import Handler, JobRun
from postroom.store.engine.database import Script, Text, schema_change, transaction
from postroom.store.jobs.jobs import completing_one
from postroom.system.wall_clock import wall_clock

SOON = RetryPolicy(base=timedelta(milliseconds=10), cap=timedelta(milliseconds=100))
CATALOGUE = Catalogue(
    JobType("letter", retry=SOON),
    JobType("parcel", retry=SOON),
    JobType("refused", retry=SOON),
    JobType("undeliverable", retry=SOON),
    JobType("errand", KeyLifetime.WHILE_LIVE, SOON),
    JobType("tick", retry=SOON),
)
STEPS = {"letter": ("open", "read", "file"), "parcel": ("weigh", "stamp")}
DELIVERED = frozenset({"parcel", "tick"})


@schema_change
def create_deliveries() -> Script[None]:
    """Where deliveries are counted. No constraint refuses a second one: the test must see it."""
    yield Text("CREATE TABLE IF NOT EXISTS chaos_deliveries (job_id text NOT NULL, attempt integer NOT NULL)")


@transaction
def deliver(job: Job, now: datetime) -> Script[None]:
    """The effect and the end of the job, in one transaction."""
    yield Text(f"INSERT INTO chaos_deliveries (job_id, attempt) VALUES ('{job.id}', {job.attempts})")
    yield from completing_one(job, now)


class StepLog:
    """One line per execution of a step's body."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def write(self, job: Job, step: str) -> None:
        os.write(self._file, f"{job.id} {step} {job.attempts}\n".encode())

    @staticmethod
    def entries(path: Path) -> list[tuple[UUID, str, int]]:
        lines = path.read_text().splitlines() if path.exists() else []
        return [(UUID(job), step, int(attempt)) for job, step, attempt in (line.split() for line in lines)]


class CountedHandlers:
    """Handles every type; a step takes `pause_s`, so that there is always something in hand."""

    def __init__(self, step_log: StepLog, pause_s: float) -> None:
        self._step_log = step_log
        self._pause_s = pause_s

    def handlers(self) -> dict[str, Handler]:
        return {
            "letter": self._in_steps,
            "parcel": self._parcel,
            "refused": self._refused,
            "undeliverable": self._undeliverable,
            "errand": self._errand,
            "tick": self._tick,
        }

    async def _in_steps(self, run: JobRun) -> None:
        for name in STEPS[run.job.type]:
            result = await run.step(name, lambda name=name: self._step(run.job, name))
            assert result == {"done": name}, result

    async def _step(self, job: Job, name: str) -> dict[str, str]:
        self._step_log.write(job, name)
        await asyncio.sleep(self._pause_s)
        return {"done": name}

    async def _parcel(self, run: JobRun) -> None:
        await self._in_steps(run)
        await run.complete(deliver(run.job, wall_clock()))

    async def _tick(self, run: JobRun) -> None:
        await run.complete(deliver(run.job, wall_clock()))

    async def _refused(self, run: JobRun) -> None:
        if run.job.attempts == 1:
            raise Retryable("nobody at home", after=timedelta(milliseconds=20))

    async def _undeliverable(self, run: JobRun) -> None:
        raise Fatal("no such address")

    async def _errand(self, run: JobRun) -> None:
        await asyncio.sleep(self._pause_s)
