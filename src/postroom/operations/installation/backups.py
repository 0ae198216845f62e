"""Back up all of Postroom's data into one file while it runs, and restore it."""

from pathlib import Path

from postroom.backup.archive import ArchiveReader, Manifest, Progress
from postroom.backup.make import Source, make_backup
from postroom.backup.restore import Restored, RestoreTarget, restore_backup
from postroom.operations.installation.database import url_of
from postroom.settings.reading import Settings
from postroom.store.people.audit import Signature
from postroom.system.wall_clock import Clock, wall_clock
from postroom.vault.sealing import Vault


async def back_up(
    settings: Settings, target: Path, keys_needed: list[str], with_keys: bool, progress: Progress
) -> Manifest:
    """Write the backup into a new file, given by its absolute path."""
    source = Source(settings.data_dir, url_of(settings), keys_needed, with_keys)
    return await make_backup(source, target, progress)


def check(file: Path, progress: Progress) -> Manifest:
    """Return the backup's manifest. Raise BackupError if the backup is not intact."""
    reader = ArchiveReader(file, progress)
    reader.close()
    return reader.manifest


async def restore(
    settings: Settings, file: Path, replace: bool, signed: Signature, progress: Progress, clock: Clock = wall_clock
) -> Restored:
    """Restore the backup while no process runs. With `replace`, keep the existing data under another name."""
    target = RestoreTarget(settings.data_dir.absolute(), url_of(settings), replace)
    return await restore_backup(file, target, signed, clock(), progress)


def missing_keys(manifest: Manifest, vault: Vault) -> list[str]:
    """Return the ids of the keys that this backup's secrets need and that are missing here."""
    here = {key.id for key in vault.known_keys()}
    return [id for id in manifest.keys_needed if id not in here]
