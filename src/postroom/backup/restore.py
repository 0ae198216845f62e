"""Restores a backup while no process runs; existing data is set aside, not deleted.

Everything is checked before anything is changed: the checksums, the integrity of the database and its row counts,
whether its migrations are known, and whether the target is empty and unused. The restored database starts paused, and
keeps the prohibitions of the replaced one (`store.prohibitions`). It is marked as restored: before mail is sent again,
sent mail is compared with it (`store.restores`).
"""

import asyncio
import os
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePosixPath

import asyncpg

from postroom.backup import postgres_copy, sqlite_copy
from postroom.backup.archive import CONNECTORS, DATABASE, KEYS, ArchiveReader, Manifest, Progress, silent
from postroom.backup.disk_space import enough_space
from postroom.core.errors import BackupError, BadInput, StoreError
from postroom.outbound.queue.restored import FILE as TIMELINE
from postroom.outbound.queue.restored import read_seen, write_seen
from postroom.store.engine import earlier_migrations
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.migrate import apply, migrate, migrations
from postroom.store.engine.postgres import PostgresDatabase
from postroom.store.engine.sqlite import SqliteDatabase
from postroom.store.installation.prohibitions import Carried, Prohibitions, begin_paused, load_prohibitions
from postroom.store.installation.timeline import mark_restored, place_of
from postroom.store.people.audit import Signature
from postroom.system.private_files import DATABASE as FILE
from postroom.system.private_files import make_private, private_folder, sync_folder
from postroom.system.restore_lock import exclusive_folder
from postroom.vault.keys import KeyFile

STAGE = ".restoring"


@dataclass(frozen=True, slots=True)
class RestoreTarget:
    """Where to restore the backup. With `replace`, existing data is set aside."""

    data_dir: Path
    url: str | None
    replace: bool = False


@dataclass(slots=True)
class Restored:
    """The result of a restore. `set_aside` names the replaced data; `carried` counts the prohibitions taken over from
    it, and is None if they could not be read."""

    manifest: Manifest
    epoch: int = 0
    carried: Carried | None = None
    set_aside: list[str] = field(default_factory=list[str])
    keys_restored: bool = False


async def restore_backup(
    file: Path, place: RestoreTarget, signed: Signature, now: datetime, progress: Progress = silent
) -> Restored:
    """Replace the existing data with the backup. Raises before anything is changed if that is impossible."""
    archive = await asyncio.to_thread(ArchiveReader, file, progress)
    try:
        _check_kind(archive.manifest, place)
        needed = sum(member.size for member in archive.manifest.members.values())
        with enough_space(f"the content of {file}", place.data_dir, needed), exclusive_folder(place.data_dir):
            restored = Restored(archive.manifest)
            stamp = f"{now:%Y%m%dT%H%M%S}"
            with _stage(place.data_dir) as stage:
                _extract_connectors(archive, stage)
                if place.url is None:
                    await _restore_sqlite(archive, place, stage, restored, stamp, signed, now, progress)
                else:
                    await _restore_postgres(archive, place, place.url, stage, restored, stamp, signed, now, progress)
            make_private(place.data_dir)
        return restored
    finally:
        archive.close()


def _check_kind(manifest: Manifest, place: RestoreTarget) -> None:
    wanted = "sqlite" if place.url is None else "postgres"
    if manifest.dialect != wanted:
        remedy = "set POSTROOM_DATABASE_URL" if wanted == "sqlite" else "leave POSTROOM_DATABASE_URL empty"
        raise BackupError(f"this is a backup of {manifest.dialect}, but the settings name {wanted}; {remedy}")
    known = {each.version: each.checksum for each in migrations(manifest.dialect)}
    for version, checksum in _migrations_of(manifest).items():
        if known.get(version) != checksum:
            raise BackupError(
                f"the backup is of a newer or changed Postroom ({manifest.postroom}, migration {version:04}); "
                "install that version"
            )


def _migrations_of(manifest: Manifest) -> dict[int, str]:
    """The migrations of the backup, by number: those from before the schema amount to it, once they are complete."""
    if not earlier_migrations.are_earlier(manifest.migrations, manifest.dialect):
        return manifest.migrations
    if not earlier_migrations.are_complete(manifest.migrations, manifest.dialect):
        raise BackupError(
            f"the backup is from an earlier Postroom (its last migration is {max(manifest.migrations):04}); restore it "
            f"with the Postroom of commit {earlier_migrations.LAST_COMMIT}, migrate it with "
            f"`{earlier_migrations.COMMAND}`, and make a new backup"
        )
    return {1: migrations(manifest.dialect)[0].checksum}


@contextmanager
def _stage(data_dir: Path) -> Generator[Path]:
    """A folder next to the data in which everything is prepared. One left by an interrupted restore is emptied."""
    stage = data_dir / STAGE
    shutil.rmtree(stage, ignore_errors=True)
    private_folder(stage)
    try:
        yield stage
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _extract_connectors(archive: ArchiveReader, stage: Path) -> None:
    private_folder(stage / "connectors")
    for name in archive.names(CONNECTORS):
        target = stage.joinpath(*PurePosixPath(name).parts)
        private_folder(target.parent)
        archive.extract(name, target)


async def _restore_sqlite(
    archive: ArchiveReader,
    place: RestoreTarget,
    stage: Path,
    restored: Restored,
    stamp: str,
    signed: Signature,
    now: datetime,
    progress: Progress,
) -> None:
    current = place.data_dir / FILE
    there = _has_content(current) or _has_state(place.data_dir / "connectors")
    if there and not place.replace:
        raise BadInput(
            "--data-dir",
            f"{place.data_dir} already contains data",
            "give an empty folder, or --replace to set it aside",
        )
    with sqlite_copy.exclusive_access(current):
        pass  # fail now rather than after the work
    staged = stage / FILE
    await asyncio.to_thread(archive.extract, f"{DATABASE}{FILE}", staged, progress)
    if await asyncio.to_thread(sqlite_copy.check_sqlite, staged) != archive.manifest.rows:
        raise BackupError("the database in the backup has other rows than its manifest says; use another backup")
    replaced = await _prohibitions(lambda: SqliteDatabase(current)) if _has_content(current) else None
    database = SqliteDatabase(staged)
    try:
        await _mark(database, place.data_dir, replaced, restored, signed, now)
    finally:
        await database.close()
    with sqlite_copy.exclusive_access(staged):
        pass  # removes the write-ahead log
    _restore_keys(archive, place.data_dir, restored)
    aside = place.data_dir / f"backup-replaced-{stamp}"
    with sqlite_copy.exclusive_access(current):
        _swap_connectors(place.data_dir, stage, aside, restored)
        _swap_database(current, staged, aside, restored)


def _swap_database(current: Path, staged: Path, aside: Path, restored: Restored) -> None:
    """Link the old file to a second name, then replace it in one step, so that there is always a database."""
    if current.exists():
        private_folder(aside)
        os.link(current, aside / FILE)
        restored.set_aside.append(str(aside / FILE))
    for suffix in ("-wal", "-shm", "-journal"):
        left = current.with_name(f"{FILE}{suffix}")
        if left.exists():
            left.rename(private_folder(aside) / left.name)
    staged.replace(current)
    sync_folder(current.parent)


async def _restore_postgres(
    archive: ArchiveReader,
    place: RestoreTarget,
    url: str,
    stage: Path,
    restored: Restored,
    stamp: str,
    signed: Signature,
    now: datetime,
    progress: Progress,
) -> None:
    manifest = archive.manifest
    async with postgres_copy.connected(url, alone=True) as connection:
        is_empty = await postgres_copy.is_empty(connection) and not _has_state(place.data_dir / "connectors")
        if not is_empty and not place.replace:
            raise BadInput(
                "database_url", "the database already contains data", "give an empty one, or --replace to set it aside"
            )
        for name in archive.names(DATABASE):
            archive.extract(name, stage / PurePosixPath(name).name, progress)
        _restore_keys(archive, place.data_dir, restored)
        replaced = None if is_empty else await _prohibitions(lambda: PostgresDatabase(url, restoring=True))
        suffix = f"replaced_{stamp.lower()}"
        restored.set_aside += await postgres_copy.set_aside(connection, suffix)
        database = PostgresDatabase(url, restoring=True)
        try:
            known = migrations("postgres")
            for each in known:
                if each.version in _migrations_of(manifest):
                    await database.run(apply(each, "postgres", known))
            await postgres_copy.copy_in(connection, stage, manifest.rows, manifest.sequences, progress)
            await _mark(database, place.data_dir, replaced, restored, signed, now)
        except BaseException as error:
            await database.close()
            await postgres_copy.put_back(connection, restored.set_aside, suffix)
            if isinstance(error, asyncpg.PostgresError):
                raise BackupError(f"PostgreSQL did not accept the rows ({error}); nothing was changed") from error
            raise
        await database.close()
        await connection.execute("ANALYZE")
    _swap_connectors(place.data_dir, stage, place.data_dir / f"backup-replaced-{stamp}", restored)


async def _prohibitions(open_replaced: Callable[[], Database]) -> Prohibitions | None:
    """Read the prohibitions of the database that is being replaced; None when it cannot be read."""
    try:
        database = open_replaced()
        try:
            return await database.run(load_prohibitions())
        finally:
            await database.close()
    except StoreError:
        return None


async def _mark(
    database: Database,
    data_dir: Path,
    replaced: Prohibitions | None,
    restored: Restored,
    signed: Signature,
    now: datetime,
) -> None:
    """Pause the restored database and mark it as restored, before it is used."""
    await migrate(database)
    backup_at = restored.manifest.created_at
    carried = await database.run(begin_paused(replaced, backup_at, signed, now))
    restored.carried = None if replaced is None else carried
    seen, place = read_seen(data_dir / TIMELINE), await place_of(database)
    timeline = await database.run(mark_restored(new_id(), place, seen, backup_at, signed, now))
    write_seen(data_dir / TIMELINE, timeline.seen)
    restored.epoch = timeline.epoch


def _has_content(file: Path) -> bool:
    return file.exists() and file.stat().st_size > 0


def _has_state(connectors: Path) -> bool:
    return any(path.is_file() and path.name != "lock" for path in connectors.rglob("*"))


def _swap_connectors(data_dir: Path, stage: Path, aside: Path, restored: Restored) -> None:
    """Replace the connectors' state, before the database: an old checkpoint is harmless, a new one would lose mail."""
    current = data_dir / "connectors"
    if current.exists():
        private_folder(aside)
        current.rename(aside / "connectors")
        restored.set_aside.append(str(aside / "connectors"))
    (stage / "connectors").rename(current)
    sync_folder(data_dir)


def _restore_keys(archive: ArchiveReader, data_dir: Path, restored: Restored) -> None:
    """Add the keys to the existing ones, before the database: a lost key cannot be recreated."""
    if KEYS in archive.manifest.members:
        restored.keys_restored = KeyFile(data_dir).merge(archive.read(KEYS), f"{KEYS} in {archive.path}") != []
