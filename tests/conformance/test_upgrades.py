"""Upgrades: a backup before every migration, all migrations or none, and a way back."""

import asyncio
import os
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from postroom.backup import before_upgrade, restore
from postroom.backup.archive import peek_manifest
from postroom.backup.before_upgrade import KEPT, backups_in
from postroom.backup.make import Source, make_backup
from postroom.core.errors import BackupError, DatabaseNewer, StoreError
from postroom.operations.installation import upgrades
from postroom.operations.installation.upgrades import in_use_by, naming_the_way_back, plan_upgrade, upgrade
from postroom.settings.reading import Settings
from postroom.store.engine import migrate as runner
from postroom.store.engine.database import Database, Dialect
from postroom.store.engine.migrate import Migration, migrations, pending
from postroom.store.engine.opening import connect_database
from postroom.store.engine.serve_lock import serve_lock
from postroom.store.installation.program_versions import last_version, record_version
from postroom.store.outbound.tenants import add_tenant, list_tenants
from support.clocks import ManualClock
from support.store.dump import dump
from support.store.fault_cases_registry import signed

NEWER = Migration(9000, "newer", "CREATE TABLE newer_things (n integer)")
BROKEN = Migration(9001, "broken", "CREATE TABLE half_done (n integer); SELECT * FROM no_such_table")


class Usage(NamedTuple):
    free: int


class Installation:
    """A data folder, its database, and the program: the one of today, or a newer one."""

    def __init__(self, folder: Path, url: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
        self.url = url
        self.settings = Settings(data_dir=folder, database_url=url)  # type: ignore[arg-type]
        self.clock = ManualClock()
        self._patch = monkeypatch
        self._opened: list[Database] = []

    def open(self) -> Database:
        self._opened.append(connect_database(self.settings.data_dir, self.url))
        return self._opened[-1]

    async def close(self) -> None:
        for database in self._opened:
            await database.close()

    async def filled(self) -> Database:
        """A database of today's program, with a tenant in it."""
        database = self.open()
        await upgrade(database, self.settings)
        await database.run(add_tenant("acme", [], 1, signed(), self.clock()))
        return database

    def becomes(self, version: str, *more: Migration) -> None:
        """Install a program of this version, which has these migrations beside today's."""

        def known(dialect: Dialect) -> tuple[Migration, ...]:
            return (*migrations(dialect), *more)

        for module in (runner, before_upgrade, restore):
            self._patch.setattr(module, "migrations", known if more else migrations)
        self._patch.setattr(upgrades, "__version__", version)

    async def upgraded(self, database: Database, backs_up: bool | None = None) -> upgrades.Upgraded:
        return await upgrade(database, self.settings, backs_up=backs_up, clock=self.clock)

    @property
    def backups(self) -> list[Path]:
        return backups_in(self.settings.data_dir)


@pytest.fixture
async def installation(
    database_url: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Installation]:
    opened = Installation(tmp_path / "data", database_url, monkeypatch)
    yield opened
    await opened.close()


async def test_a_backup_is_made_before_a_database_that_holds_data_is_changed(installation: Installation) -> None:
    database = await installation.filled()
    before = await dump(database)
    installation.becomes("0.2.0", NEWER)
    done = await installation.upgraded(database, backs_up=True)
    assert (done.since, done.applied, await pending(database)) == ("0.1.0", ["newer"], [])
    assert installation.backups == [done.backup]
    assert done.backup is not None
    assert done.backup.name == f"0.1.0-{installation.clock():%Y%m%dT%H%M%S}.postroom-backup"
    assert max(peek_manifest(done.backup).migrations) == len(migrations(database.dialect)), "it is from before"
    assert await database.run(last_version()) == "0.2.0"
    after = await dump(database)
    changed = {name.split(".")[-1] for name, rows in before.items() if after[name] != rows}
    assert changed == {"schema_migrations", "program_versions"}


async def test_a_clock_that_was_ahead_does_not_hide_the_version_that_ran_last(database: Database) -> None:
    clock = ManualClock()
    await database.run(record_version("0.1.0", clock() + timedelta(days=1)))
    await database.run(record_version("0.2.0", clock()))
    assert await database.run(last_version()) == "0.2.0"


async def test_a_new_database_and_one_without_data_are_not_backed_up(installation: Installation) -> None:
    database = installation.open()
    assert (await installation.upgraded(database, backs_up=True)).backup is None
    installation.becomes("0.2.0", NEWER)
    assert await installation.upgraded(database, backs_up=True) == upgrades.Upgraded("0.1.0", ["newer"])


async def test_an_upgrade_that_breaks_at_its_last_migration_leaves_everything_as_it_was(
    installation: Installation,
) -> None:
    database = await installation.filled()
    before = await dump(database)
    installation.becomes("0.2.0", NEWER, BROKEN)
    with pytest.raises(StoreError):
        await installation.upgraded(database, backs_up=True)
    assert await dump(database) == before
    assert len(installation.backups) == 1


async def test_only_the_newest_backups_are_kept_and_other_files_stay(installation: Installation) -> None:
    database = await installation.filled()
    folder = installation.settings.data_dir / "backups"
    folder.mkdir(parents=True)
    mine = folder / "my own.postroom-backup"
    mine.touch()
    killed = folder / ".0.1.0-20261119T223035.postroom-backup.no1ol2j1"
    killed.mkdir()
    (killed / "postroom.sqlite3").touch()
    killed.with_suffix(".partial").touch()
    for number in range(KEPT + 2):
        installation.clock.forward(60)
        more = [Migration(9000 + n, f"m{n}", f"CREATE TABLE more_{n} (n integer)") for n in range(number + 1)]
        installation.becomes(f"0.{number + 2}.0", *more)
        await installation.upgraded(database, backs_up=True)
    assert [path.name.partition("-")[0] for path in installation.backups] == ["0.5.0", "0.4.0", "0.3.0"]
    assert mine.exists()
    if database.dialect == "sqlite":
        assert len(list(folder.iterdir())) == KEPT + 1, "parts of backups whose process was killed are removed"


async def test_without_room_for_the_backup_nothing_is_changed(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = await installation.filled()
    installation.becomes("0.2.0", NEWER)
    before = await dump(database)
    monkeypatch.setattr("shutil.disk_usage", lambda _: Usage(4096))  # type: ignore[reportUnknownLambdaType]
    with pytest.raises(BackupError, match=r"nothing was changed: .* needs about .* `postroom upgrade --no-backup`"):
        await installation.upgraded(database, backs_up=True)
    assert await dump(database) == before
    assert (await installation.upgraded(database, backs_up=False)).applied == ["newer"]


async def test_a_folder_in_which_no_backup_can_be_written_stops_the_upgrade(installation: Installation) -> None:
    database = await installation.filled()
    installation.becomes("0.2.0", NEWER)
    installation.settings.data_dir.mkdir(exist_ok=True)
    (installation.settings.data_dir / "backups").touch()
    with pytest.raises(BackupError, match="nothing was changed"):
        await installation.upgraded(database, backs_up=True)
    assert await pending(database) == ["newer"]


async def test_processes_that_start_at_once_make_one_backup(installation: Installation) -> None:
    database = await installation.filled()
    if database.dialect == "postgres":
        source = Source(installation.settings.data_dir, installation.url, [])
        installation.clock.now = (await make_backup(source, installation_file(installation))).created_at
    installation.becomes("0.2.0", NEWER)
    sides = [database, installation.open(), installation.open()]
    done = await asyncio.gather(*(installation.upgraded(side) for side in sides))
    assert sorted(name for each in done for name in each.applied) == ["newer"]
    assert len(installation.backups) == (1 if database.dialect == "sqlite" else 0)


async def test_a_start_on_postgres_asks_for_a_recent_backup(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be large, and made by other means: nothing makes one but the command that was asked to."""
    installation = Installation(tmp_path / "data", postgres_url, monkeypatch)
    try:
        database = await installation.filled()
        installation.becomes("0.2.0", NEWER)
        with pytest.raises(BackupError, match=r"1 migration would change .* run `postroom upgrade`"):
            await installation.upgraded(database)
        manifest = await make_backup(
            Source(installation.settings.data_dir, postgres_url, []), installation_file(installation)
        )
        installation.clock.now = manifest.created_at + timedelta(hours=25)
        with pytest.raises(BackupError, match="in the last day"):
            await installation.upgraded(database)
        installation.clock.now = manifest.created_at + timedelta(hours=23)
        assert (await installation.upgraded(database)).applied == ["newer"]
    finally:
        await installation.close()


async def test_an_older_program_names_the_backup_that_leads_back_and_restores_it(installation: Installation) -> None:
    """The whole circle: upgrade, refusal by the older program, restore, and all is as before."""
    database = await installation.filled()
    installation.becomes("0.2.0", NEWER)
    done = await installation.upgraded(database, backs_up=True)
    await database.run(add_tenant("globex", [], 1, signed(), installation.clock()))
    await database.close()
    installation.becomes("0.1.0")
    back = f"`postroom restore --replace {done.backup} --data-dir {installation.settings.data_dir}`"
    with (
        pytest.raises(DatabaseNewer, match=rf"newer Postroom .*{back}"),
        naming_the_way_back(installation.settings),
    ):
        await pending(installation.open())
    await installation.close()
    assert done.backup is not None
    target = restore.RestoreTarget(installation.settings.data_dir, installation.url, replace=True)
    await restore.restore_backup(done.backup, target, signed(), installation.clock())
    database = installation.open()
    assert await pending(database) == []
    assert [each.name for each in await database.run(list_tenants())] == ["acme"]


async def test_a_backup_that_this_program_cannot_restore_is_not_named(installation: Installation) -> None:
    database = await installation.filled()
    installation.becomes("0.2.0", NEWER)
    await installation.upgraded(database, backs_up=False)
    installation.clock.forward(60)
    installation.becomes("0.3.0", NEWER, Migration(9002, "newest", "CREATE TABLE newest (n integer)"))
    await installation.upgraded(database, backs_up=True)
    installation.becomes("0.1.0")
    with pytest.raises(DatabaseNewer) as refused, naming_the_way_back(installation.settings):
        await pending(database)
    assert "restore" not in str(refused.value)


async def test_the_plan_says_what_an_upgrade_would_do_and_changes_nothing(installation: Installation) -> None:
    database = await installation.filled()
    installation.becomes("0.2.0", NEWER)
    before = await dump(database)
    plan = await plan_upgrade(database, installation.settings, None)
    assert (plan.program, plan.database, plan.pending, plan.backup_at) == ("0.2.0", "0.1.0", ["newer"], None)
    assert plan.room is not None
    assert plan.room.is_enough
    assert await dump(database) == before


async def test_whoever_uses_the_database_is_named(installation: Installation) -> None:
    assert await in_use_by(installation.settings) is None
    database = await installation.filled()
    who = await in_use_by(installation.settings)
    if database.dialect == "postgres":
        assert who is not None
        assert "of Postroom" in who
        return
    assert who == "by another process, such as `postroom worker`"
    with serve_lock(installation.settings.data_dir) as note:
        note("http://localhost:8025")
        assert await in_use_by(installation.settings) == f"by process {os.getpid()}, at http://localhost:8025"


def installation_file(installation: Installation) -> Path:
    return installation.settings.data_dir.with_name("one.postroom-backup")
