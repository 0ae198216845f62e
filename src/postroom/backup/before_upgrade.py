"""The backups that upgrades make before they change a database: in `backups/` in the data folder, the newest few.

backups/0.1.0-20261119T183000.postroom-backup     as version 0.1.0 left it, at that time
"""

import re
import shutil
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from postroom.backup.archive import Progress, peek_manifest, silent
from postroom.backup.disk_space import free_bytes, in_mib
from postroom.backup.make import Source, make_backup, space_needed
from postroom.core.errors import BackupError, PostroomError
from postroom.store.engine.database import Dialect
from postroom.store.engine.migrate import migrations
from postroom.system.private_files import BACKUPS, private_folder

KEPT = 3
_NAME = re.compile(r"(?P<version>[\w.+]+)-(?P<at>\d{8}T\d{6})\.postroom-backup")
OTHERWISE = "if you have another backup, run `postroom upgrade --no-backup`"


@dataclass(frozen=True, slots=True)
class Room:
    """The space in bytes that a backup needs for a while, and that is free."""

    needed: int
    free: int

    @property
    def is_enough(self) -> bool:
        return self.needed <= self.free


async def room_for(source: Source) -> Room:
    return Room(await space_needed(source), free_bytes(source.data_dir))


async def back_up_before(source: Source, version: str, now: datetime, progress: Progress = silent) -> Path:
    """Make the backup, verified, and remove those beyond the newest few. Raises BackupError if it cannot be made."""
    if source.url is None:  # there one process upgrades at a time; on PostgreSQL they may be another's
        _remove_unfinished(source.data_dir / BACKUPS)
    room = await room_for(source)
    if not room.is_enough:
        raise BackupError(
            f"nothing was changed: the backup before the upgrade needs about {in_mib(room.needed)} in "
            f"{source.data_dir}, where {in_mib(room.free)} are free; free some space, or {OTHERWISE}"
        )
    try:
        target = private_folder(source.data_dir / BACKUPS) / f"{version}-{now:%Y%m%dT%H%M%S}.postroom-backup"
        await make_backup(source, target, progress)
    except (PostroomError, OSError) as error:
        raise BackupError(
            f"nothing was changed: the backup before the upgrade could not be made ({error}); {OTHERWISE}"
        ) from error
    for old in backups_in(source.data_dir)[KEPT:]:
        old.unlink(missing_ok=True)
    return target


def backups_in(data_dir: Path) -> list[Path]:
    """The backups that upgrades have made, the newest first. Other files in the folder are left alone."""
    named = [(found["at"], path) for path in _files(data_dir / BACKUPS) if (found := _NAME.fullmatch(path.name))]
    return [path for _, path in sorted(named, reverse=True)]


def way_back(data_dir: Path, dialect: Dialect) -> Path | None:
    """The newest of them that this program can restore."""
    known = {each.version: each.checksum for each in migrations(dialect)}
    for path in backups_in(data_dir):
        try:
            manifest = peek_manifest(path)
        except BackupError:
            continue
        if manifest.dialect == dialect and manifest.migrations.items() <= known.items():
            return path
    return None


def _remove_unfinished(folder: Path) -> None:
    """Remove the parts of backups whose process was killed: each is as large as the database."""
    for path in folder.glob(".*.postroom-backup.*"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _files(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.is_file() and not path.is_symlink()]
    except OSError:
        return []
