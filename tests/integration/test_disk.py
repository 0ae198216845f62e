"""When the disk fills up: intake stops early, with a reason; accepted work is still done."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import apsw
import pytest

from postroom.core.errors import DatabaseFull, IntakeRefused
from postroom.core.jobs.types import Catalogue, JobType
from postroom.intake.disk import DiskReserve
from postroom.intake.intake import Intake
from postroom.jobs.run import JobRun
from postroom.jobs.worker import Worker
from postroom.store.engine.ballast import Ballast
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import open_database
from postroom.store.engine.sqlite import SqliteDatabase
from postroom.store.intake import history
from postroom.store.mail.mail import keep_account
from postroom.system.wall_clock import wall_clock
from support.job_queue import JobQueue

MORE_THAN_ANY_DISK_MIB = 1 << 40
CATALOGUE = Catalogue(JobType("noop"))
ENDPOINT = "gmail:user:a@b.example"


def envelope(number: int, text: str = "hello") -> dict[str, Any]:
    return {
        "schema_version": "ingest.v1",
        "source": {"channel": "email", "provider": "gmail", "endpoint_identity": ENDPOINT},
        "event": {"external_event_id": str(number), "observed_at": "2026-11-15T08:00:00Z"},
        "sender": {"identity": "c@d.example"},
        "payload": {"raw": {}, "normalized_text": text},
    }


@pytest.fixture
async def database(tmp_path: Path) -> AsyncGenerator[SqliteDatabase]:
    opened = await open_database(tmp_path)
    assert isinstance(opened, SqliteDatabase)
    await opened.run(keep_account(new_id(), "gmail", ENDPOINT, "a@b.example", wall_clock()))
    yield opened
    await opened.close()


async def test_intake_is_refused_below_the_reserve_and_says_what_to_do(
    database: SqliteDatabase, tmp_path: Path
) -> None:
    intake = Intake(database, DiskReserve(tmp_path, MORE_THAN_ANY_DISK_MIB))
    with pytest.raises(IntakeRefused, match=r"reserve.*disk_reserve_mib") as refused:
        await intake.ingest(envelope(1))
    assert refused.value.retry_after.total_seconds() > 0
    assert await database.run(history.count_states("email")) == {}


async def test_work_keeps_draining_while_intake_is_refused(database: SqliteDatabase, tmp_path: Path) -> None:
    queue = JobQueue(database, CATALOGUE)
    accepted = await queue.enqueue("noop", {})
    intake = Intake(database, DiskReserve(tmp_path, MORE_THAN_ANY_DISK_MIB))
    with pytest.raises(IntakeRefused):
        await intake.ingest(envelope(1))
    ran = asyncio.Event()

    async def noop(_run: JobRun) -> None:
        ran.set()

    worker = Worker(database, CATALOGUE, {"noop": noop})
    working = asyncio.create_task(worker.run())
    await ran.wait()
    worker.stop()
    await working
    shown = await queue.show(accepted.id)
    assert shown is not None
    assert shown.state == "completed"


async def test_intake_goes_on_when_there_is_room_again(database: SqliteDatabase, tmp_path: Path) -> None:
    room = [0]
    intake = Intake(database, DiskReserve(tmp_path, 1, free=lambda _folder: room[0], check_every_s=0))
    with pytest.raises(IntakeRefused):
        await intake.ingest(envelope(1))
    room[0] = 1 << 30
    assert not (await intake.ingest(envelope(1))).duplicate


async def test_a_full_disk_refuses_the_message_whole_and_the_ballast_makes_room_to_go_on(tmp_path: Path) -> None:
    """SQLite's own limit on the size of its file stands in for the disk's; giving up the ballast lifts it."""
    opened = await open_database(tmp_path)
    await opened.run(keep_account(new_id(), "gmail", ENDPOINT, "a@b.example", wall_clock()))
    await opened.close()
    ballast = _LiftingBallast(tmp_path / "ballast")
    assert ballast.take()
    database = SqliteDatabase(tmp_path / "postroom.sqlite3", ballast)
    ballast.connection = database._connection
    _limit(database, spare_pages=0)
    intake = Intake(database, None)
    try:
        assert not (await intake.ingest(envelope(1, "x" * 100_000))).duplicate, "the ballast made room for this one"
        assert not (tmp_path / "ballast").exists()
        _limit(database, spare_pages=0)
        with pytest.raises(IntakeRefused, match="full"):
            await intake.ingest(envelope(2, "x" * 100_000))
        counted = await database.run(history.count_states("email"))
        assert counted == {("default", "waiting"): 1}
        with pytest.raises(DatabaseFull):
            await JobQueue(database, CATALOGUE).enqueue("noop", {"text": "x" * 500_000})
    finally:
        await database.close()


class _LiftingBallast(Ballast):
    """Giving it up gives the database more pages, as it gives the disk more room."""

    connection: apsw.Connection | None = None

    def give_up(self) -> bool:
        freed = super().give_up()
        if freed and self.connection is not None:
            self.connection.execute("PRAGMA max_page_count = 1000000")
        return freed


def _limit(database: SqliteDatabase, spare_pages: int) -> None:
    pages = database._connection.execute("PRAGMA page_count").fetchall()[0][0]
    database._connection.execute(f"PRAGMA max_page_count = {pages + spare_pages}")


async def test_what_is_kept_is_for_its_owners_eyes_only(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    database = await open_database(folder)
    await database.close()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "postroom.sqlite3").stat().st_mode & 0o777 == 0o600
