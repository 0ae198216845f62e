"""A backup is whole or refused, goes only where nothing is, and never where a process runs."""

from pathlib import Path

import pytest

from conformance.desk import Desk
from conformance.dump import dump
from conformance.fault_cases_outbound import admitted
from conformance.fault_cases_registry import signed
from conftest import ManualClock
from postroom.backup.make import Source, make_backup
from postroom.backup.restore import Place, restore_backup
from postroom.core.errors import BackupError, BadInput, DatabaseInUse
from postroom.key_file import KeyFile
from postroom.store.opening import open_database

CHANGED = ("schema_migrations", "timeline", "restores", "restore_checks", "audit", "sqlite_sequence")


async def filled(folder: Path, url: str | None, clock: ManualClock) -> Desk:
    desk = Desk(await open_database(folder, url), clock)
    await admitted(desk)
    return desk


async def test_a_restored_database_holds_what_the_backup_held(
    database_url: str | None, tmp_path: Path, clock: ManualClock
) -> None:
    folder, file = tmp_path / "data", tmp_path / "one.postroom-backup"
    desk = await filled(folder, database_url, clock)
    state = folder / "connectors" / "gmail-a" / "checkpoint.json"
    state.parent.mkdir(parents=True)
    state.write_text('{"history_id":1}')
    before = await dump(desk.database)
    await make_backup(Source(folder, database_url, []), file)
    state.write_text('{"history_id":2}')
    with pytest.raises(DatabaseInUse):
        await restore_backup(file, Place(folder, database_url, replace=True), signed(), clock())
    await desk.database.close()
    with pytest.raises(BadInput, match="holds data"):
        await restore_backup(file, Place(folder, database_url), signed(), clock())
    restored = await restore_backup(file, Place(folder, database_url, replace=True), signed(), clock())
    assert restored.set_aside
    assert state.read_text() == '{"history_id":1}'
    database = await open_database(folder, database_url)
    try:
        after = await dump(database)
    finally:
        await database.close()
    for name, rows in before.items():
        if name.split(".")[-1] not in CHANGED:
            assert after[name] == rows, name
    assert file.stat().st_mode & 0o777 == 0o600


async def test_a_damaged_or_cut_off_backup_is_refused_before_anything_is_touched(
    tmp_path: Path, clock: ManualClock
) -> None:
    folder, file = tmp_path / "data", tmp_path / "one.postroom-backup"
    desk = await filled(folder, None, clock)
    await make_backup(Source(folder, None, []), file)
    await desk.database.close()
    whole = file.read_bytes()
    middle = len(whole) // 2
    for broken in (whole[:middle], whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]):
        file.write_bytes(broken)
        with pytest.raises(BackupError):
            await restore_backup(file, Place(tmp_path / "new", None), signed(), clock())
        assert not (tmp_path / "new").exists()


async def test_keys_of_the_backup_join_those_that_are_there(tmp_path: Path, clock: ManualClock) -> None:
    folder, other, file = tmp_path / "data", tmp_path / "other", tmp_path / "one.postroom-backup"
    desk = await filled(folder, None, clock)
    key = KeyFile(folder).add(clock())
    await make_backup(Source(folder, None, [key.id], with_keys=True), file)
    await desk.database.close()
    own = KeyFile(other).add(clock())
    restored = await restore_backup(file, Place(other, None), signed(), clock())
    assert restored.keys_restored
    assert [each.id for each in KeyFile(other).read()] == [key.id, own.id]
    assert (other / "keys.json").stat().st_mode & 0o777 == 0o600
