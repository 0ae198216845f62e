"""Makes a backup while Postroom runs: the state of the connectors first, then a snapshot of the database.

The order matters. With a checkpoint older than the database, a connector delivers some messages again, which are
recognised as duplicates. With a newer one it would skip mail that the restored database does not have.
"""

import asyncio
import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from postroom import __version__
from postroom.backup import postgres_copy, sqlite_copy
from postroom.backup.archive import CONNECTORS, DATABASE, KEYS, ArchiveWriter, Manifest, Progress, silent
from postroom.backup.disk_space import enough_space, size_of
from postroom.core.errors import BackupError, BadInput
from postroom.system.private_files import DATABASE as FILE
from postroom.system.private_files import private_folder, replace_private
from postroom.system.wall_clock import wall_clock

LAST_BACKUP = "timeline.json.last-backup"
_NOT_STATE = ("-wal", "-shm", ".partial", "-journal")


@dataclass(frozen=True, slots=True)
class Source:
    """The database to back up. `keys_needed` are the keys of the stored secrets."""

    data_dir: Path
    url: str | None
    keys_needed: list[str]
    with_keys: bool = False


async def make_backup(source: Source, target: Path, progress: Progress = silent) -> Manifest:
    """Write a complete, verified backup to a new file."""
    _check(source, target)
    needed = await space_needed(source)
    with (
        enough_space(f"the backup {target}", target.parent, needed),
        tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as name,
    ):
        folder = Path(name)  # private, like all temporary folders
        writer = ArchiveWriter(target)
        try:
            await asyncio.to_thread(_add_connectors, writer, source.data_dir / "connectors", folder)
            manifest = await _add_database(writer, source, folder, progress)
            if source.with_keys:
                writer.add_file(KEYS, source.data_dir / KEYS)
            await asyncio.to_thread(writer.finish, manifest)
        except FileExistsError:
            raise BadInput(
                "FILE", f"{target} was just created by another process", "give each backup its own name"
            ) from None
        finally:
            writer.discard()
    with contextlib.suppress(OSError):  # the backup is complete even if this note for `doctor` fails
        note_backup(source.data_dir, manifest.created_at)
    return manifest


def _check(source: Source, target: Path) -> None:
    if target.exists():
        raise BadInput("FILE", f"{target} already exists", "give each backup its own name")
    if not target.parent.is_dir():
        raise BadInput("FILE", f"the folder {target.parent} does not exist", "create it first")
    keys = source.data_dir / KEYS
    if source.with_keys and not keys.is_file():
        raise BadInput(
            "--with-keys", f"there is no {keys}", "leave it out: the keys are in POSTROOM_SECRET_KEY, or none"
        )


async def space_needed(source: Source) -> int:
    """The approximate space in bytes: everything is copied first, and then written into the archive."""
    connectors = size_of(source.data_dir / "connectors")
    if source.url is None:
        return connectors + 2 * size_of(*source.data_dir.glob(f"{FILE}*"))
    async with postgres_copy.connected(source.url) as connection:
        return connectors + 2 * await postgres_copy.size_of(connection)


async def _add_database(writer: ArchiveWriter, source: Source, folder: Path, progress: Progress) -> Manifest:
    if source.url is None:
        return await asyncio.to_thread(_add_sqlite, writer, source, folder, progress)
    async with postgres_copy.connected(source.url) as connection:
        copied = await postgres_copy.copy_out(connection, folder, progress)
    for name in copied.rows:
        await asyncio.to_thread(writer.add_file, f"{DATABASE}{name}", folder / name, progress)
        (folder / name).unlink()
    return Manifest(
        "postgres",
        copied.at.astimezone(UTC),
        __version__,
        copied.migrations,
        copied.rows,
        source.keys_needed,
        source.with_keys,
        copied.sequences,
    )


def _add_sqlite(writer: ArchiveWriter, source: Source, folder: Path, progress: Progress) -> Manifest:
    if not (source.data_dir / FILE).is_file():
        raise BackupError(f"there is no database in {source.data_dir}; choose another folder with --data-dir")
    copy, created_at = folder / FILE, wall_clock()
    sqlite_copy.copy_sqlite(source.data_dir / FILE, copy, progress)
    rows = sqlite_copy.check_sqlite(copy)
    migrations = sqlite_copy.migrations_in(copy)
    writer.add_file(f"{DATABASE}{FILE}", copy, progress)
    return Manifest("sqlite", created_at, __version__, migrations, rows, source.keys_needed, source.with_keys)


def _add_connectors(writer: ArchiveWriter, folder: Path, scratch: Path) -> None:
    for path in _state_files(folder):
        name = f"{CONNECTORS}{path.relative_to(folder).as_posix()}"
        try:
            if sqlite_copy.is_sqlite(path):
                copy = scratch / "connector"
                sqlite_copy.copy_sqlite(path, copy)
                writer.add_file(name, copy)
                copy.unlink()
            else:
                writer.add_bytes(name, path.read_bytes())  # read at once, since it may be replaced meanwhile
        except FileNotFoundError:
            continue


def _state_files(folder: Path) -> Iterator[Path]:
    """The files of connectors, without locks and without the side files of open SQLite databases."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != "lock" and not path.name.endswith(_NOT_STATE):
            yield path


def note_backup(data_dir: Path, at: datetime) -> None:
    """Record the time of the backup, so that `doctor` can tell its age."""
    replace_private(private_folder(data_dir) / LAST_BACKUP, f"{at.isoformat()}\n".encode())


def last_backup(data_dir: Path) -> datetime | None:
    try:
        return datetime.fromisoformat((data_dir / LAST_BACKUP).read_text("ascii").strip())
    except (OSError, ValueError):
        return None
