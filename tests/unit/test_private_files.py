"""File modes: folders 0700, files 0600, enforced at every start."""

import os
import stat
from pathlib import Path

import pytest

from postroom.core.errors import DatabaseReadOnly
from postroom.store.engine.opening import connect_database, open_database
from postroom.system.private_files import exposed_files, make_private, replace_private


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_what_was_open_to_others_is_closed_when_the_database_is_opened(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    (folder / "connectors" / "gmail-a").mkdir(parents=True)
    state = folder / "connectors" / "gmail-a" / "checkpoint.json"
    for path in (state, folder / "ballast"):
        path.write_text("{}")
        path.chmod(0o644)
    folder.chmod(0o755)
    database = await open_database(folder)
    try:
        for path in [folder, *folder.rglob("*")]:
            assert mode(path) == (0o700 if path.is_dir() else 0o600), path
    finally:
        await database.close()


def test_files_that_are_not_ours_are_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("x")
    other.chmod(0o644)
    make_private(tmp_path)
    assert mode(other) == 0o644
    assert exposed_files(tmp_path) == []


def test_a_replaced_file_is_private_under_any_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        replace_private(tmp_path / "timeline.json", b"{}")
    finally:
        os.umask(before)
    assert mode(tmp_path / "timeline.json") == 0o600


async def test_a_data_folder_that_is_missing_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "data"
    await connect_database(folder).close()
    assert mode(folder) == 0o700


def test_a_data_folder_that_cannot_be_made_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DatabaseReadOnly, match=r"cannot be created.*--data-dir"):
        connect_database(tmp_path / "file" / "data")
