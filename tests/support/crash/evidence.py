"""What is left after the storm, and what must be true of it.

Read past the store, straight from the tables: what a store verb would hide, this must see.
"""

import os
import subprocess
from collections import Counter, defaultdict
from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg

from postroom.core.lifecycle import JOB
from postroom.store.engine.opening import FILE
from postroom.store.engine.sqlite_connection import connect
from support.crash.counted_jobs import DELIVERED, STEPS, StepLog
from support.crash.worker_process import DIARY
from support.postgres import PostgresServer

_CONSISTENT = """
    SELECT (SELECT count(*) FROM job_bodies) - (SELECT count(*) FROM job_queue) - (SELECT count(*) FROM job_ends),
        (SELECT count(*) FROM job_queue JOIN job_ends USING (seq)),
        (SELECT count(*) FROM job_queue LEFT JOIN job_bodies b USING (seq) WHERE b.id IS NULL),
        (SELECT count(*) FROM job_ends LEFT JOIN job_bodies b USING (seq) WHERE b.id IS NULL)
"""
_LOCKS = """
    SELECT count(*) FROM pg_locks WHERE pid <> pg_backend_pid()
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


@dataclass(frozen=True)
class Place:
    """Where one test's database lies, for the test and for its children."""

    folder: Path
    server: PostgresServer | None = None
    url: str | None = None

    @property
    def file(self) -> Path:
        return self.folder / FILE

    @property
    def step_log(self) -> Path:
        return self.folder / DIARY

    def arguments(self) -> list[str]:
        return ["--data-dir", str(self.folder), *(["--url", self.url] if self.url else [])]

    async def rows(self, text: str) -> list[tuple[Any, ...]]:
        if self.url is None:
            connection = connect(self.file, read_only=True)
            try:
                return connection.execute(text).fetchall()
            finally:
                connection.close()
        session = await asyncpg.connect(self.url, server_settings={"search_path": "postroom"})
        try:
            return [tuple(row) for row in await session.fetch(text)]
        finally:
            await session.close()

    async def live_jobs(self) -> int:
        return (await self.rows("SELECT count(*) FROM jobs WHERE state IN ('queued', 'running')"))[0][0]

    async def completed_jobs(self) -> int:
        return (await self.rows("SELECT count(*) FROM jobs WHERE state = 'completed'"))[0][0]

    async def leases(self) -> int:
        return (await self.rows("SELECT count(*) FROM job_leases"))[0][0]

    async def check_integrity(self) -> None:
        """The database itself is sound, whatever stands in it."""
        if self.url is None:
            assert await self.rows("PRAGMA integrity_check") == [("ok",)]
            assert await self.rows("PRAGMA foreign_key_check") == []
        else:
            assert await self.rows(_CONSISTENT) == [(0, 0, 0, 0)]

    def check_pages(self) -> None:
        """Every page is read (their checksums are verified), and every index is built anew from what is there."""
        if self.server is not None and self.url is not None:
            command = [str(self.server._bin / "pg_dump"), "--no-sync", "-f", os.devnull, self.url]
            subprocess.run(command, check=True, capture_output=True)
            self.server.sql("REINDEX SCHEMA postroom", database=self.url.rpartition("/")[2])


@dataclass(frozen=True)
class Ended:
    """How one job ended."""

    type: str
    state: str
    attempts: int
    max_attempts: int


async def ended_jobs(place: Place) -> dict[UUID, Ended]:
    rows = await place.rows("SELECT id, type, state, attempts, max_attempts FROM jobs")
    jobs = {UUID(str(id)): Ended(*rest) for id, *rest in rows}
    assert len(jobs) == len(rows), "a job stands there twice"
    return jobs


async def check_everything(place: Place, acknowledged: Set[UUID]) -> Counter[str]:
    """All that the storm must not have broken. Returns how many jobs ended how."""
    jobs = await ended_jobs(place)
    assert not acknowledged - jobs.keys(), "acknowledged and lost"
    assert not jobs.keys() - acknowledged, "accepted, but nobody was told"
    return await check_all_ended(place, jobs)


async def check_all_ended(place: Place, jobs: Mapping[UUID, Ended]) -> Counter[str]:
    """Each job has ended in one way, with its effects, and nothing of the dead is left behind."""
    assert {job.state for job in jobs.values()} <= JOB.terminal
    overused = [job for job in jobs.values() if not 1 <= job.attempts <= job.max_attempts]
    assert not overused, overused
    await check_deliveries(place, jobs)
    await check_steps(place, jobs)
    await check_nothing_held(place)
    await place.check_integrity()
    place.check_pages()
    return Counter(job.state for job in jobs.values())


async def check_deliveries(place: Place, jobs: Mapping[UUID, Ended]) -> None:
    """An effect that belongs to the end of its job is there exactly once if, and only if, the job completed."""
    delivered = defaultdict[UUID, list[int]](list)
    for id, attempt in await place.rows("SELECT job_id, attempt FROM chaos_deliveries"):
        delivered[UUID(id)].append(attempt)
    for id, job in jobs.items():
        due = [job.attempts] if job.type in DELIVERED and job.state == "completed" else []
        assert delivered[id] == due, (id, job, delivered[id])


async def check_steps(place: Place, jobs: Mapping[UUID, Ended]) -> None:
    """A finished step was finished once, and its body was never run again in a later attempt."""
    finished: dict[tuple[UUID, str], int] = {}
    for id, name, attempt in await place.rows(
        "SELECT job_id, name, attempt FROM job_steps WHERE finished_at IS NOT NULL AND kind = 'step'"
    ):
        key = (UUID(str(id)), name)
        assert key not in finished, f"{key} was finished twice"
        finished[key] = attempt
    runs = Counter(StepLog.entries(place.step_log))
    assert not [entry for entry, times in runs.items() if times > 1], "a body was run twice in one attempt"
    for id, name, attempt in runs:
        assert attempt <= finished.get((id, name), attempt), f"{name} of {id} was done again after it had finished"
    for (id, name), attempt in finished.items():
        assert (id, name, attempt) in runs, f"{name} of {id} is said to be finished, and its body was never run"
    for id, job in jobs.items():
        if job.state == "completed":
            assert all((id, name) in finished for name in STEPS.get(job.type, ())), (id, job)


async def check_nothing_held(place: Place) -> None:
    """No lease, no leader, no key of a dead job, no lock of a dead process."""
    assert await place.rows("SELECT holder FROM job_leases") == []
    assert await place.rows("SELECT holder FROM leaders") == []
    assert await place.rows("SELECT key FROM job_keys WHERE key LIKE 'errand%'") == []
    if place.url is not None:
        assert await place.rows(_LOCKS) == [(0,)]
        return
    connection = connect(place.file)
    connection.set_busy_timeout(0)
    connection.execute("BEGIN EXCLUSIVE; ROLLBACK")
    connection.close()
