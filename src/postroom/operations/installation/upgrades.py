"""Upgrades: a verified backup first, then all migrations or none, and the way back.

On SQLite every process that finds pending migrations makes the backup itself, and others wait for it. On PostgreSQL a
backup may take long, and may be made by other means: there only `upgrade` makes one, and everything else asks for a
backup no older than a day.
"""

import asyncio
import contextlib
import fcntl
import os
import shlex
from collections.abc import AsyncGenerator, Generator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import structlog

from postroom import __version__
from postroom.backup.archive import Progress, silent
from postroom.backup.before_upgrade import OTHERWISE, Room, back_up_before, room_for, way_back
from postroom.backup.make import Source, last_backup
from postroom.backup.postgres_copy import connected, count_others
from postroom.core.counted import counted
from postroom.core.errors import BackupError, DatabaseInUse, DatabaseNewer
from postroom.operations.installation.changelog import changes_since
from postroom.operations.installation.database import url_of
from postroom.operations.installation.vault import vault_of
from postroom.settings.locations import user_folders
from postroom.settings.reading import Settings
from postroom.store.engine.database import Database
from postroom.store.engine.migrate import migrate, pending
from postroom.store.engine.serve_lock import served_by
from postroom.store.installation.program_versions import holds_data, last_version, record_version
from postroom.system.folder_errors import check_private
from postroom.system.private_files import open_private, private_folder
from postroom.system.restore_lock import exclusive_folder
from postroom.system.wall_clock import Clock, wall_clock

log = structlog.get_logger()

LOCK = "upgrade.lock"
RECENT = timedelta(days=1)
LOOK_EVERY_S = 0.2


@dataclass(frozen=True, slots=True)
class Upgraded:
    """The migrations that were applied, and the backup from before, if there was anything to keep."""

    since: str
    applied: list[str]
    backup: Path | None = None


@dataclass(frozen=True, slots=True)
class UpgradePlan:
    """The effect of an upgrade, and its needs."""

    program: str
    database: str
    """The version that ran last on this database."""
    pending: list[str]
    changes: list[str]
    backup_at: datetime | None
    """When the last backup was made, by whatever command."""
    room: Room | None
    """The space for the backup; None where there is nothing to back up."""
    in_use: str | None
    """Who has to be stopped first."""


async def plan_upgrade(database: Database, settings: Settings, in_use: str | None) -> UpgradePlan:
    """Say what an upgrade would do; change nothing."""
    since, at = await database.run(last_version()), last_backup(settings.data_dir)
    room = await room_for(_source(settings)) if await database.run(holds_data()) else None
    return UpgradePlan(__version__, since, await pending(database), changes_since(since), at, room, in_use)


async def in_use_by(settings: Settings) -> str | None:
    """Who uses the database, before this process opens it: it may be the version from before."""
    url = url_of(settings)
    if url is not None:
        async with connected(url) as connection:
            others = await count_others(connection)
        return f"by {counted(others, 'connection')} of Postroom" if others else None
    if served := served_by(settings.data_dir):
        return f"by process {served.process}{served.address and f', at {served.address}'}"
    try:
        with exclusive_folder(settings.data_dir):
            return None
    except DatabaseInUse:
        return "by another process, such as `postroom worker`"


async def upgrade(
    database: Database,
    settings: Settings,
    *,
    backs_up: bool | None = None,
    progress: Progress = silent,
    clock: Clock = wall_clock,
) -> Upgraded:
    """Bring the schema up to date. `backs_up` None is as a start does it: a backup on SQLite, a recent one on
    PostgreSQL."""
    if not await pending(database):
        await _record(database, clock)
        return Upgraded(__version__, [])
    async with _alone(settings.data_dir) if database.dialect == "sqlite" else contextlib.nullcontext():
        since, missing, made = await database.run(last_version()), await pending(database), None
        if missing and backs_up is not False and await database.run(holds_data()):
            if backs_up is None and database.dialect == "postgres":
                _check_recent(settings.data_dir, missing, clock)
            else:
                made = await back_up_before(_source(settings), since, clock(), progress)
        applied = await migrate(database)
        await _record(database, clock)
        return Upgraded(since, applied, made)


async def upgrade_at_start(database: Database, settings: Settings) -> None:
    """Bring the schema up to date as a process starts, and log what was done."""
    done = await upgrade(database, settings)
    if done.backup is not None:
        log.info("upgrade.backed_up", since=done.since, file=str(done.backup))
        log.info("upgrade.applied", since=done.since, migrations=done.applied)


@contextlib.contextmanager
def naming_the_way_back(settings: Settings) -> Generator[None]:
    """Add to the refusal of a newer database how to go back to this version."""
    try:
        yield
    except DatabaseNewer as error:
        found = way_back(settings.data_dir, "sqlite" if url_of(settings) is None else "postgres")
        if found is None:
            raise
        own = user_folders(os.environ)
        is_usual = own is not None and own.data == settings.data_dir
        where = "" if is_usual else f" --data-dir {shlex.quote(str(settings.data_dir))}"
        back = f"postroom restore --replace {shlex.quote(str(found))}{where}"
        raise DatabaseNewer(f"{error}. To go back to the backup from before the upgrade: `{back}`") from None


def _source(settings: Settings) -> Source:
    """All keys are named, since which are in use is stored in a schema that this program may not know."""
    return Source(settings.data_dir, url_of(settings), [key.id for key in vault_of(settings).known_keys()])


async def _record(database: Database, clock: Clock) -> None:
    if await database.run(last_version()) != __version__:
        await database.run(record_version(__version__, clock()))


def _check_recent(data_dir: Path, missing: list[str], clock: Clock) -> None:
    made_at = last_backup(data_dir)
    if made_at is None or clock() - made_at > RECENT:
        raise BackupError(
            f"{counted(len(missing), 'migration')} would change this database, and `postroom backup` has made no "
            f"backup in the last day; run `postroom upgrade`, which makes one first. {OTHERWISE.capitalize()}"
        )


@contextlib.asynccontextmanager
async def _alone(data_dir: Path) -> AsyncGenerator[None]:
    """Let one process of this folder upgrade at a time; the others wait, and find nothing left to do."""
    check_private(data_dir)
    handle = open_private(private_folder(data_dir) / LOCK, os.O_RDWR | os.O_CREAT)
    try:
        await _wait_for(handle)
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)


async def _wait_for(handle: int) -> None:
    """Wait until no other process has the lock; not in a thread, which no one could interrupt."""
    is_said = False
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not is_said:
                holder = os.pread(handle, 20, 0).decode("ascii", "replace").strip()
                log.info("upgrade.waiting", process=holder or "?")
            is_said = True
        await asyncio.sleep(LOOK_EVERY_S)
