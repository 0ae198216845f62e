"""A backup is intact or refused, restored only into an empty place, and never while a process runs."""

from pathlib import Path

import pytest

from postroom.backup.make import Source, make_backup
from postroom.backup.restore import RestoreTarget, restore_backup
from postroom.core.errors import BackupError, BadInput, DatabaseInUse
from postroom.core.roles import Role
from postroom.store.actions import pauses
from postroom.store.actions.protection import list_protected, protect
from postroom.store.engine import migrate as runner
from postroom.store.engine.database import Script, Text, transaction
from postroom.store.engine.migrate import pending
from postroom.store.engine.opening import connect_database, open_database
from postroom.store.installation.prohibitions import Carried
from postroom.store.outbound.tenants import list_tenants
from postroom.store.people.tokens import create_token, list_tokens, mint, revoke_token
from postroom.system.private_files import DATABASE
from postroom.vault.keys import KeyFile
from support.clocks import ManualClock
from support.store.dump import dump
from support.store.earlier_databases import migrate_as_before, schema_alone
from support.store.fault_cases_outbound import admitted
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup

CHANGED = (
    *("schema_migrations", "timeline", "restores", "restore_checks", "audit", "sqlite_sequence"),
    *("pauses", "pause_generation"),
)


async def filled(folder: Path, url: str | None, clock: ManualClock) -> JobSetup:
    setup = JobSetup(await open_database(folder, url), clock)
    await admitted(setup)
    return setup


async def test_a_restored_database_holds_what_the_backup_held(
    database_url: str | None, tmp_path: Path, clock: ManualClock
) -> None:
    folder, file = tmp_path / "data", tmp_path / "one.postroom-backup"
    setup = await filled(folder, database_url, clock)
    state = folder / "connectors" / "gmail-a" / "checkpoint.json"
    state.parent.mkdir(parents=True)
    state.write_text('{"history_id":1}')
    before = await dump(setup.database)
    await make_backup(Source(folder, database_url, []), file)
    state.write_text('{"history_id":2}')
    with pytest.raises(DatabaseInUse):
        await restore_backup(file, RestoreTarget(folder, database_url, replace=True), signed(), clock())
    await setup.database.close()
    with pytest.raises(BadInput, match="contains data"):
        await restore_backup(file, RestoreTarget(folder, database_url), signed(), clock())
    restored = await restore_backup(file, RestoreTarget(folder, database_url, replace=True), signed(), clock())
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
    setup = await filled(folder, None, clock)
    await make_backup(Source(folder, None, []), file)
    await setup.database.close()
    whole = file.read_bytes()
    middle = len(whole) // 2
    for broken in (whole[:middle], whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]):
        file.write_bytes(broken)
        with pytest.raises(BackupError):
            await restore_backup(file, RestoreTarget(tmp_path / "new", None), signed(), clock())
        assert not (tmp_path / "new").exists()


async def test_a_backup_from_before_the_schema_is_restored_if_it_has_all_migrations(
    database_url: str | None, tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "migrations", schema_alone)
    folder, file = tmp_path / "data", tmp_path / "one.postroom-backup"
    database = connect_database(folder, database_url)
    await migrate_as_before(database)
    await database.run(_add_tenant())
    before = await dump(database)
    await make_backup(Source(folder, database_url, []), file)
    await database.close()
    await restore_backup(file, RestoreTarget(folder, database_url, replace=True), signed(), clock())
    database = connect_database(folder, database_url)
    try:
        assert await pending(database) == []
        after = await dump(database)
        assert [each.name for each in await database.run(list_tenants())] == ["acme"]
    finally:
        await database.close()
    assert {name for name, rows in before.items() if after[name] != rows} <= {
        name for name in before if name.split(".")[-1] in CHANGED
    }


async def test_a_backup_on_the_way_to_the_schema_is_told_how_to_get_there(
    database_url: str | None, tmp_path: Path, clock: ManualClock
) -> None:
    folder, file = tmp_path / "data", tmp_path / "one.postroom-backup"
    database = connect_database(folder, database_url)
    await migrate_as_before(database, 57)
    await make_backup(Source(folder, database_url, []), file)
    before = await dump(database)
    with pytest.raises(BackupError, match=r"earlier Postroom .*0057.*git checkout [0-9a-f]{8} .*make a new backup"):
        await restore_backup(file, RestoreTarget(folder, database_url, replace=True), signed(), clock())
    assert await dump(database) == before
    await database.close()


@transaction
def _add_tenant() -> Script[None]:
    yield Text(
        "INSERT INTO tenants (name, weight, created_at, updated_at) "
        "VALUES ('acme', 1, '2026-11-15T08:00:00.000000Z', '2026-11-15T08:00:00.000000Z')"
    )


async def test_keys_of_the_backup_join_those_that_are_there(tmp_path: Path, clock: ManualClock) -> None:
    folder, other, file = tmp_path / "data", tmp_path / "other", tmp_path / "one.postroom-backup"
    setup = await filled(folder, None, clock)
    key = KeyFile(folder).add(clock())
    await make_backup(Source(folder, None, [key.id], with_keys=True), file)
    await setup.database.close()
    own = KeyFile(other).add(clock())
    restored = await restore_backup(file, RestoreTarget(other, None), signed(), clock())
    assert restored.keys_restored
    assert [each.id for each in KeyFile(other).read()] == [key.id, own.id]
    assert (other / "keys.json").stat().st_mode & 0o777 == 0o600


async def test_what_was_forbidden_after_the_backup_stays_forbidden_when_it_is_restored(
    database_url: str | None, tmp_path: Path, clock: ManualClock
) -> None:
    folder, file = tmp_path / "data", tmp_path / "one.postroom-backup"
    setup = await filled(folder, database_url, clock)
    token = mint(Role.ADMIN).token
    await setup.database.run(create_token(token, signed(), clock()))
    await make_backup(Source(folder, database_url, []), file)
    await setup.database.run(pauses.pause(pauses.ALL, "stop it all", signed(), clock()))
    await setup.database.run(protect("sender", "ann@example.org", "", signed(), clock()))
    await setup.database.run(revoke_token(token.id, signed(), clock()))
    await setup.database.close()
    restored = await restore_backup(file, RestoreTarget(folder, database_url, replace=True), signed(), clock())
    assert restored.carried == Carried(pauses=1, protected=1, tokens=1)
    database = await open_database(folder, database_url)
    try:
        (pause,) = await database.run(pauses.standing_pauses())
        assert "stop it all" in pause.reason
        assert [each.value for each in await database.run(list_protected())] == ["ann@example.org"]
        assert [each.revoked_at is None for each in await database.run(list_tokens())] == [False]
    finally:
        await database.close()


async def test_a_database_that_cannot_be_read_is_replaced_by_one_that_is_paused(
    tmp_path: Path, clock: ManualClock
) -> None:
    folder, file = tmp_path / "data", tmp_path / "one.postroom-backup"
    setup = await filled(folder, None, clock)
    await make_backup(Source(folder, None, []), file)
    await setup.database.close()
    (folder / DATABASE).write_bytes(b"no database" * 1000)
    restored = await restore_backup(file, RestoreTarget(folder, None, replace=True), signed(), clock())
    assert restored.carried is None
    database = await open_database(folder, None)
    try:
        assert [each.scope for each in await database.run(pauses.standing_pauses())] == [pauses.ALL]
    finally:
        await database.close()
