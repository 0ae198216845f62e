"""SQLite's write-ahead log stays short while readers overlap and others write; if it cannot, that is reported."""

import asyncio
import contextlib
import itertools
import signal
import threading
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import apsw
import pytest

from postroom.core.errors import IntakeRefused, TookTooLong
from postroom.intake.disk import DiskReserve
from postroom.intake.intake import Intake
from postroom.store.engine.database import Script, Text, query, sql
from postroom.store.engine.opening import open_database
from postroom.store.engine.sqlite import SqliteDatabase
from postroom.store.engine.write_ahead_log import snapshot_holders
from support.crash.counted_jobs import CATALOGUE
from support.crash.evidence import Place
from support.job_queue import JobQueue
from support.processes import Child, ProcessGroup
from support.scale import scale
from support.sqlite import copy_sqlite

MIB = 1024 * 1024
LIMIT = 128 * MIB
PARCEL = 256 * 1024
WRITTEN = scale(160, 4096) * MIB
READERS = 4
# A read of a few hundred milliseconds, whatever is in the database.
SLOW = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000) SELECT count(*) FROM n"


@pytest.fixture
def place(migrated_sqlite: Path, tmp_path: Path) -> Place:
    folder = tmp_path / "data"
    copy_sqlite(migrated_sqlite, folder)
    return Place(folder)


@pytest.fixture
async def database(place: Place) -> AsyncGenerator[SqliteDatabase]:
    opened = await open_database(place.folder)
    assert isinstance(opened, SqliteDatabase)
    yield opened
    await opened.close()


@query
def count_slowly() -> Script[tuple[int, int]]:
    """The last job before and after something that takes long: one snapshot, so both are the same."""
    ((_, before),) = yield sql("select_job_seqs")
    yield Text(SLOW)
    ((_, after),) = yield sql("select_job_seqs")
    return before or 0, after or 0


class Log:
    """The file of the log, and the largest that it has been seen."""

    def __init__(self, place: Place) -> None:
        self._file = place.file.with_name(f"{place.file.name}-wal")
        self.largest = 0

    def look(self) -> int:
        size = self._file.stat().st_size if self._file.exists() else 0
        self.largest = max(self.largest, size)
        return size


async def write(database: SqliteDatabase, log: Log, total: int, prefix: str = "mine") -> None:
    """So many bytes of jobs, by a few callers at once."""
    queue, numbers = JobQueue(database, CATALOGUE), itertools.count()

    async def call() -> None:
        while (number := next(numbers)) * PARCEL < total:
            await queue.enqueue("parcel", {"filling": "x" * PARCEL}, key=f"{prefix}-{number}")
            log.look()

    await asyncio.gather(*(call() for _ in range(8)))


async def read_forever(database: SqliteDatabase, delay: float, done: list[bool]) -> None:
    """One slow read after another; `done` gets whether each was answered or cut off for good."""
    await asyncio.sleep(delay)
    while True:
        try:
            before, after = await database.run(count_slowly())
            assert before == after, "a snapshot has changed under its reader"
            done.append(True)
        except TookTooLong:
            done.append(False)


@contextlib.asynccontextmanager
async def reading(database: SqliteDatabase) -> AsyncGenerator[list[bool]]:
    """Readers that overlap: at every moment somebody reads from a snapshot of some time ago."""
    done: list[bool] = []
    tasks = [asyncio.create_task(read_forever(database, number / 20, done)) for number in range(READERS)]
    try:
        yield done
    finally:
        for task in tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks)


async def test_the_log_stays_short_beside_readers_that_overlap(place: Place, database: SqliteDatabase) -> None:
    """Where its threads hardly get to run the log may pass its limit a little; but it is used again and again."""
    log, total = Log(place), WRITTEN
    async with reading(database) as done:
        await write(database, log, WRITTEN)
        while log.largest >= max(LIMIT, total // 8) and total < 10 * WRITTEN:
            await write(database, log, WRITTEN, f"mine-{total}")
            total += WRITTEN
    print(f"{total // MIB} MiB written, log at most {log.largest // MIB} MiB, {done.count(True)} reads answered")
    assert log.largest < max(LIMIT, total // 8)
    await place.check_integrity()


async def test_the_log_stays_short_beside_readers_and_a_second_writing_process(
    place: Place, database: SqliteDatabase, children: ProcessGroup
) -> None:
    """Between two processes that hardly get to run, the log may pass its limit; but it is used again and again."""
    log, total = Log(place), WRITTEN
    producer = await children.start(
        "support.crash.producer_process", *place.arguments(), "--prefix", "theirs", "--weight", str(PARCEL)
    )
    await producer.hear("accepted")
    async with reading(database):
        await write(database, log, WRITTEN)
        while log.largest >= max(LIMIT, total // 3) and total < 10 * WRITTEN:
            await write(database, log, WRITTEN, f"mine-{total}")
            total += WRITTEN
        while len(producer.announced("accepted")) * PARCEL < WRITTEN // 4:
            await producer.hear("accepted", after=producer.lines[-1].at)
            log.look()
    await producer.kill()
    theirs = len(producer.announced("accepted")) * PARCEL
    print(f"{total // MIB} + {theirs // MIB} MiB written, log at most {log.largest // MIB} MiB")
    assert log.largest < max(LIMIT, total // 3)
    await place.check_integrity()


async def test_a_read_that_the_log_cannot_wait_for_is_begun_again_and_answered(
    place: Place, database: SqliteDatabase
) -> None:
    """It sees what was committed when it was begun for the last time."""
    log = Log(place)
    first = asyncio.create_task(database.run(count_slowly()))
    await write(database, log, WRITTEN)
    before, after = await first
    assert before == after
    assert log.largest < LIMIT


def envelope(number: int) -> dict[str, Any]:
    return {
        "schema_version": "ingest.v1",
        "source": {"channel": "webhook", "provider": "webhook", "endpoint_identity": "webhook:ci"},
        "event": {"external_event_id": str(number), "observed_at": "2026-11-15T08:00:00Z"},
        "sender": {"identity": "ci"},
        "payload": {"raw": {"build": number}, "normalized_text": "x" * PARCEL},
    }


async def take_in(intake: Intake, log: Log, numbers: "itertools.count[int]", most: int) -> IntakeRefused | None:
    """Until it is refused, or so many bytes were taken in."""
    for _ in range(most // PARCEL):
        try:
            await intake.ingest(envelope(next(numbers)))
        except IntakeRefused as refused:
            return refused
        log.look()
    return None


async def hold_a_snapshot(place: Place, children: ProcessGroup) -> Child:
    reader = await children.start("support.crash.reader_process", *place.arguments())
    await reader.hear("reads")
    return reader


class OtherProgram(threading.Thread):
    """Reads from one snapshot after another, on a connection of its own, and knows nothing of us."""

    def __init__(self, place: Place) -> None:
        super().__init__(daemon=True)
        self._connection = apsw.Connection(str(place.file), flags=apsw.SQLITE_OPEN_READONLY)
        self._connection.set_busy_timeout(10_000)
        self._closing = threading.Event()
        self.snapshots = 0

    def run(self) -> None:
        while not self._closing.is_set():
            self._connection.execute("BEGIN")
            before = self._connection.execute("SELECT count(*) FROM envelopes").fetchall()
            self._connection.execute(SLOW.replace("1000000", "200000")).fetchall()
            assert self._connection.execute("SELECT count(*) FROM envelopes").fetchall() == before
            self._connection.execute("ROLLBACK")
            self.snapshots += 1

    def close(self) -> None:
        self._closing.set()
        self.join()
        self._connection.close()


async def test_other_programs_whose_snapshots_overlap_stop_nothing(place: Place, database: SqliteDatabase) -> None:
    """At every moment one of them reads from the log; it is begun again all the same."""
    log, numbers = Log(place), itertools.count()
    intake = Intake(database, DiskReserve(place.folder, 1, database=place.file))
    others = [OtherProgram(place) for _ in range(2)]
    for each in others:
        each.start()
    try:
        rounds = 0
        while log.look() >= log.largest and rounds < 200:
            assert await take_in(intake, log, numbers, most=8 * MIB) is None
            rounds += 1
    finally:
        for each in others:
            await asyncio.to_thread(each.close)
    print(f"log at most {log.largest // MIB} MiB beside {[each.snapshots for each in others]} snapshots")
    assert log.look() < log.largest, "it was begun again"
    await place.check_integrity()


async def test_a_frozen_reader_stops_nothing_while_the_disk_has_room(
    place: Place, database: SqliteDatabase, children: ProcessGroup
) -> None:
    log, numbers = Log(place), itertools.count()
    intake = Intake(database, DiskReserve(place.folder, 1, database=place.file))
    reader = await hold_a_snapshot(place, children)
    assert await take_in(intake, log, numbers, most=2 * LIMIT) is None
    assert log.largest > LIMIT
    reader.signal(signal.SIGCONT)
    assert (await reader.hear("done")).details == "True", "its snapshot stood all the while"
    await reader.ended()
    while log.look() >= LIMIT // 2:  # the writer tries again by itself, also while nobody writes
        await database.run(count_slowly())


async def test_a_frozen_reader_stops_intake_before_the_log_fills_the_disk_and_nothing_else(
    place: Place, database: SqliteDatabase, children: ProcessGroup
) -> None:
    log, numbers = Log(place), itertools.count()
    intake = Intake(database, DiskReserve(place.folder, 1, lambda _folder: LIMIT // 2, database=place.file))
    reader = await hold_a_snapshot(place, children)
    refused = await take_in(intake, log, numbers, most=2 * LIMIT)
    assert refused is not None
    assert "write-ahead log" in str(refused)
    assert log.largest < LIMIT
    assert reader.pid in snapshot_holders(place.file)
    await JobQueue(database, CATALOGUE).enqueue("parcel", {"filling": ""}, key="still works")
    assert (await database.run(count_slowly()))[0] == 1
    reader.signal(signal.SIGCONT)
    assert (await reader.hear("done")).details == "True", "its snapshot stood all the while"
    await reader.ended()
    while log.look() >= LIMIT // 2:  # the writer tries again by itself, also while nobody writes
        await database.run(count_slowly())
    assert await take_in(intake, log, numbers, most=LIMIT // 2) is None
    assert log.largest < LIMIT
