"""A disk that is full or read-only: a clear error, nothing half written, and work continues afterwards."""

import asyncio
import os
import signal
import tempfile
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from postroom.core.errors import DatabaseFull, DatabaseReadOnly, DatabaseUnavailable, StoreError
from postroom.store.engine.database import Database, Script, Text, transaction
from postroom.store.engine.opening import FILE, open_database
from support.crash.accepted import accepted, check_accepted
from support.crash.counted_jobs import CATALOGUE
from support.crash.evidence import Place
from support.job_queue import JobQueue
from support.processes import ProcessGroup

PROCESS = "support.crash.disk_process"
ROOM = 2_000_000
BIG = "x" * 900_000
BIG_PAGES = 220


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
async def database(place: Place) -> AsyncGenerator[Database]:
    opened = await open_database(place.folder)
    yield opened
    await opened.close()


@pytest.fixture
def common_folder() -> Generator[Path]:
    """A folder that others than its owner can reach."""
    with tempfile.TemporaryDirectory(prefix="postroom-chaos-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@transaction
def limit_pages(pages: int) -> Script[None]:
    """SQLite's own idea of a full disk."""
    yield Text(f"PRAGMA max_page_count = {pages}")


async def pages(place: Place) -> int:
    return (await place.rows("PRAGMA page_count"))[0][0]


async def test_when_a_file_cannot_grow_the_write_is_refused_and_others_work_on(
    place: Place, database: Database, children: ProcessGroup
) -> None:
    cramped = await children.start(PROCESS, *place.arguments(), "--room", str(ROOM))
    refused = await cramped.hear("refused")
    kind, key, *_ = refused.details.split()
    assert kind in (DatabaseFull.__name__, StoreError.__name__)
    told = accepted(cramped)
    assert told
    assert await place.rows("SELECT count(*) FROM jobs") == [(len(told),)]
    assert await place.rows(f"SELECT count(*) FROM job_keys WHERE key = '{key}'") == [(0,)]
    queue = JobQueue(database, CATALOGUE)
    told["mine"] = (await queue.enqueue("parcel", {}, key="mine")).id
    cramped.signal(signal.SIGCONT)
    await cramped.hear("done")
    assert await cramped.ended() == 0, cramped.complaints()
    await check_accepted(place, queue, told | accepted(cramped))
    assert len(cramped.announced("refused")) == 1


async def test_on_a_full_disk_only_what_does_not_fit_is_refused(place: Place, database: Database) -> None:
    queue = JobQueue(database, CATALOGUE)
    await database.run(limit_pages(await pages(place) + BIG_PAGES // 2))
    small = [queue.enqueue("parcel", {}, key=f"small-{number}") for number in range(3)]
    answers = await asyncio.gather(*small)
    with pytest.raises(DatabaseFull, match="free some space"):
        await queue.enqueue("parcel", {"filling": BIG}, key="big")
    assert not (place.folder / "ballast").exists(), "the ballast is given up before work is refused"
    told = {f"small-{number}": answer.id for number, answer in enumerate(answers)}
    await check_accepted(place, queue, told)
    await database.run(limit_pages(1_000_000))
    told["big"] = (await queue.enqueue("parcel", {"filling": BIG}, key="big")).id
    await check_accepted(place, queue, told)


async def test_in_a_group_that_meets_a_full_disk_the_innocent_are_accepted(place: Place, database: Database) -> None:
    """Separate callers, whose transactions share one commit."""
    queues = [JobQueue(database, CATALOGUE) for _ in range(4)]
    await database.run(limit_pages(await pages(place) + BIG_PAGES // 2))
    fillings = ["", "", BIG, ""]
    asked = [
        queue.enqueue("parcel", {"filling": filling}, key=f"p-{number}")
        for number, (queue, filling) in enumerate(zip(queues, fillings, strict=True))
    ]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert [isinstance(answer, DatabaseFull) for answer in answers] == [False, False, True, False]
    told = {f"p-{number}": each.id for number, each in enumerate(answers) if not isinstance(each, BaseException)}
    assert len(told) == 3
    await check_accepted(place, queues[0], told)


@pytest.mark.parametrize("folder", ["/proc/postroom-data", "/sys/postroom-data"])
async def test_a_folder_that_not_even_root_can_make_is_named_in_the_error(folder: str) -> None:
    with pytest.raises((DatabaseReadOnly, DatabaseUnavailable), match=folder):
        await open_database(Path(folder))


async def test_a_folder_that_cannot_be_written_is_named_in_the_error(
    common_folder: Path, children: ProcessGroup
) -> None:
    os.chmod(common_folder, 0o500)
    process = await children.start(PROCESS, "--data-dir", str(common_folder), "--powerless")
    refused = await process.hear("refused")
    assert refused.details.startswith((DatabaseUnavailable.__name__, DatabaseReadOnly.__name__))
    assert str(common_folder) in refused.details
    assert os.listdir(common_folder) == []


@pytest.mark.parametrize("mode", [0o500, 0o700], ids=["folder and file", "file only"])
async def test_a_database_that_cannot_be_written_is_named_in_the_error(
    common_folder: Path, children: ProcessGroup, mode: int
) -> None:
    database = await open_database(common_folder)
    accepted = await JobQueue(database, CATALOGUE).enqueue("parcel", {})
    await database.close()
    os.chmod(common_folder / FILE, 0o400)
    os.chmod(common_folder, mode)
    process = await children.start(PROCESS, "--data-dir", str(common_folder), "--powerless")
    refused = await process.hear("refused")
    assert refused.details.startswith((DatabaseUnavailable.__name__, DatabaseReadOnly.__name__)), refused
    assert str(common_folder) in refused.details
    os.chmod(common_folder / FILE, 0o600)
    rows = await Place(common_folder).rows("SELECT id FROM jobs")
    assert rows == [(str(accepted.id),)]
