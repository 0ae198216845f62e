"""An index of a connector is closed between rounds: what was in it is there again, and what happens to the file
meanwhile is survived.
"""

import os
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from postroom.core.errors import StoreError
from postroom.mailboxes.following.index_file import IndexFile

TABLE = "CREATE TABLE IF NOT EXISTS seen (id INTEGER PRIMARY KEY)"
COUNT = "SELECT count(*) FROM seen"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "index.db"


@pytest.fixture
def file(path: Path) -> Iterator[IndexFile]:
    with closing(IndexFile(path, [TABLE], "normal")) as opened:
        yield opened


def open_files(path: Path) -> list[str]:
    """The files of the index that this process has open, where the system tells."""
    found: list[str] = []
    for each in Path("/proc/self/fd").glob("*"):
        with suppress(FileNotFoundError):
            found.append(os.readlink(each))
    return [each for each in found if each.startswith(str(path))]


def test_a_closed_index_holds_no_files_and_knows_everything_when_it_is_used_again(file: IndexFile, path: Path) -> None:
    file.run_all([("INSERT INTO seen VALUES (?)", (1,)), ("INSERT INTO seen VALUES (?)", (2,))])
    assert str(path) in open_files(path) or not Path("/proc/self/fd").exists()
    file.close()
    assert open_files(path) == []
    assert file.run(COUNT) == [(2,)]


def test_of_several_statements_all_are_written_or_none(file: IndexFile) -> None:
    with pytest.raises(StoreError, match=r"index\.db cannot be read or written"):
        file.run_all([("INSERT INTO seen VALUES (1)", ()), ("INSERT INTO nothing VALUES (1)", ())])
    assert file.run(COUNT) == [(0,)]
    file.run("INSERT INTO seen VALUES (1)")
    assert file.run(COUNT) == [(1,)]


def test_a_file_that_was_deleted_while_it_was_closed_begins_empty(file: IndexFile, path: Path) -> None:
    file.run("INSERT INTO seen VALUES (1)")
    file.close()
    for each in path.parent.glob("index.db*"):
        each.unlink()
    assert file.run(COUNT) == [(0,)]


def test_a_file_that_was_damaged_while_it_was_closed_is_set_aside(file: IndexFile, path: Path) -> None:
    file.run("INSERT INTO seen VALUES (1)")
    file.run("PRAGMA wal_checkpoint(TRUNCATE)")
    file.close()
    path.write_bytes(b"no database" * 1000)
    assert file.run(COUNT) == [(0,)]
    assert path.with_name("index.db.damaged").exists()


def test_the_log_that_is_read_when_it_is_opened_stays_short(file: IndexFile, path: Path) -> None:
    for number in range(2000):
        file.run("INSERT INTO seen VALUES (?)", number)
        if not number % 500:
            file.close()
    assert path.with_name("index.db-wal").stat().st_size < 2 * 2**20
