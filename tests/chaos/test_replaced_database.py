"""The database file replaced, deleted or overwritten under a running process: noticed before anything is answered."""

import asyncio
import os
import shutil
from collections.abc import AsyncGenerator, Callable
from datetime import timedelta
from pathlib import Path

import apsw
import pytest

from postroom.core.errors import DatabaseReplaced, IntakeRefused
from postroom.core.roles import Role
from postroom.intake.disk import DiskReserve
from postroom.intake.intake import Intake
from postroom.interfaces.http.token_check import TokenCheck
from postroom.store.accounts.accounts import list_accounts
from postroom.store.engine.opening import FILE, open_database
from postroom.store.engine.sqlite import SqliteDatabase
from postroom.store.people.tokens import create_token, mint
from postroom.system.wall_clock import wall_clock
from support.crash.counted_jobs import CATALOGUE
from support.crash.evidence import Place
from support.job_queue import JobQueue
from support.sqlite import copy_sqlite
from support.store.fault_cases_registry import signed
from support.switchboard import mail


@pytest.fixture
def place(migrated_sqlite: Path, tmp_path: Path) -> Place:
    """Where it lies, and beside it another database of the same kind."""
    for name in ("data", "other"):
        copy_sqlite(migrated_sqlite, tmp_path / name)
    return Place(tmp_path / "data")


@pytest.fixture
async def database(place: Place) -> AsyncGenerator[SqliteDatabase]:
    opened = await open_database(place.folder)
    assert isinstance(opened, SqliteDatabase)
    yield opened
    await opened.close()


def other(file: Path) -> Path:
    return file.parent.parent / "other" / FILE


def log_of(file: Path) -> Path:
    return file.with_name(f"{file.name}-wal")


def exchange(file: Path) -> None:
    os.replace(other(file), file)


def move_away(file: Path) -> None:
    file.rename(file.with_name("moved"))


def delete_the_folder(file: Path) -> None:
    shutil.rmtree(file.parent)


def overwrite(file: Path) -> None:
    """As `cp` does, which keeps the file and replaces what is in it."""
    shutil.copyfile(other(file), file)


def overwrite_with_a_copy_of_itself(file: Path) -> None:
    copy = file.with_name("copy")
    connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    connection.execute("VACUUM INTO ?", (str(copy),))
    connection.close()
    shutil.copyfile(copy, file)


def delete_the_log(file: Path) -> None:
    log_of(file).unlink()


def exchange_the_log(file: Path) -> None:
    copy = file.with_name("log")
    shutil.copyfile(log_of(file), copy)
    os.replace(copy, log_of(file))


def cut_off_the_log(file: Path) -> None:
    os.truncate(log_of(file), 4096)


def overwrite_the_log(file: Path) -> None:
    with log_of(file).open("r+b") as log:
        log.write(os.urandom(log_of(file).stat().st_size))


WAYS = [exchange, move_away, delete_the_folder, overwrite, overwrite_with_a_copy_of_itself]
WAYS_WITH_THE_LOG = [delete_the_log, exchange_the_log, cut_off_the_log, overwrite_the_log]


@pytest.mark.parametrize("way", [*WAYS, *WAYS_WITH_THE_LOG], ids=lambda way: way.__name__)
async def test_nothing_is_acknowledged_once_the_file_is_another(
    place: Place, database: SqliteDatabase, way: Callable[[Path], None]
) -> None:
    queue, intake = JobQueue(database, CATALOGUE), Intake(database, None)
    for number in range(5):
        await queue.enqueue("parcel", {}, key=f"before-{number}")
    way(place.file)
    answers = await asyncio.gather(
        *(JobQueue(database, CATALOGUE).enqueue("parcel", {}, key=f"after-{number}") for number in range(5)),
        return_exceptions=True,
    )
    assert [type(each) for each in answers] == [DatabaseReplaced] * 5
    assert "start it again" in str(answers[0])
    with pytest.raises(IntakeRefused, match="no longer the database that was opened"):
        await intake.ingest(mail(1))


@pytest.mark.parametrize("way", [*WAYS, *WAYS_WITH_THE_LOG], ids=lambda way: way.__name__)
async def test_nothing_is_believed_that_was_read_from_another_file(
    place: Place, database: SqliteDatabase, way: Callable[[Path], None]
) -> None:
    """A token that is valid must not be refused: whoever sent it would give up for good."""
    minted = mint(Role.CONNECTOR, "gmail:user:mara@lindqvist.example", "test")
    await database.run(create_token(minted.token, signed(), wall_clock()))
    tokens = TokenCheck(database, keep=timedelta(0))
    assert (await tokens.check(minted.text)).role is Role.CONNECTOR
    await tokens.close()
    way(place.file)
    for _ in range(5):
        with pytest.raises(DatabaseReplaced, match="no longer the database that was opened"):
            await tokens.check(minted.text)
        with pytest.raises(DatabaseReplaced):
            await database.run(list_accounts())


async def test_reads_beside_writes_and_checkpoints_are_believed(place: Place, database: SqliteDatabase) -> None:
    queue = JobQueue(database, CATALOGUE)
    connection = apsw.Connection(str(place.file))
    connection.set_busy_timeout(10_000)
    for number in range(100):
        await asyncio.gather(
            queue.enqueue("parcel", {"filling": "x" * 20_000}, key=f"mine-{number}"),
            *(database.run(list_accounts()) for _ in range(8)),
            asyncio.to_thread(connection.wal_checkpoint, "main", apsw.SQLITE_CHECKPOINT_TRUNCATE),
        )
    connection.close()


async def test_without_its_folder_intake_is_refused_with_the_reason(place: Place) -> None:
    reserve = DiskReserve(place.folder, 0, check_every_s=0)
    delete_the_folder(place.file)
    with pytest.raises(IntakeRefused, match=r"cannot be read \(No such file or directory\)"):
        reserve.check_space()


async def test_a_file_that_is_the_right_one_is_never_taken_for_another(place: Place, database: SqliteDatabase) -> None:
    """Others read, write and make checkpoints meanwhile; the log is restarted; the file grows and shrinks."""
    queue = JobQueue(database, CATALOGUE)
    beside = await open_database(place.folder)
    other_queue = JobQueue(beside, CATALOGUE)
    connection = apsw.Connection(str(place.file))
    connection.set_busy_timeout(10_000)
    modes = (apsw.SQLITE_CHECKPOINT_PASSIVE, apsw.SQLITE_CHECKPOINT_TRUNCATE)
    for number in range(200):
        await asyncio.gather(
            queue.enqueue("parcel", {"filling": "x" * 20_000}, key=f"mine-{number}"),
            other_queue.enqueue("parcel", {}, key=f"theirs-{number}"),
            asyncio.to_thread(connection.wal_checkpoint, "main", modes[number % 2]),
            return_exceptions=False,
        )
    connection.close()
    await beside.close()
    assert await place.rows("SELECT count(*) FROM jobs") == [(400,)]
