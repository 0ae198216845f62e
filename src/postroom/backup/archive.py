"""The backup file: a tar archive whose last member, the manifest, lists all others with their checksums.

    database/…       the SQLite file, or one file of rows for each table of PostgreSQL
    connectors/…     the checkpoints of the connectors
    keys.json        the keys that decrypt the accounts' secrets, only on request
    manifest.json    the content, the time, and the keys that are needed

An archive without a manifest is incomplete; one with wrong checksums is damaged. Both are refused before anything is
changed.
"""

import contextlib
import hashlib
import io
import json
import os
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import IO, Any

from postroom.core.errors import BackupError
from postroom.store.engine.database import Dialect
from postroom.system.private_files import FILE_MODE, open_private, sync_folder

FORMAT = "postroom-backup/1"
MANIFEST = "manifest.json"
KEYS = "keys.json"
DATABASE = "database/"
CONNECTORS = "connectors/"
CHUNK = 1 << 20

Progress = Callable[[str, int, int], None]
"""Called with the name of the current step, the amount done, and the total."""


def silent(_what: str, _done: int, _total: int) -> None:
    """Ignore progress."""


@dataclass(frozen=True, slots=True)
class Member:
    """One file in the archive."""

    size: int
    sha256: str


@dataclass(slots=True)
class Manifest:
    """The description of a backup. `keys_needed` are the keys that decrypt the accounts' secrets."""

    dialect: Dialect
    created_at: datetime
    postroom: str
    migrations: dict[int, str]
    rows: dict[str, int]
    keys_needed: list[str]
    keys_included: bool
    sequences: dict[str, int] = field(default_factory=dict[str, int])
    members: dict[str, Member] = field(default_factory=dict[str, Member])

    def as_json(self) -> bytes:
        content = {"format": FORMAT, **asdict(self), "created_at": self.created_at.isoformat()}
        return json.dumps(content, indent=1).encode() + b"\n"


def read_manifest(content: bytes) -> Manifest:
    """Parse a manifest. Raises BackupError if this version of Postroom does not understand it."""
    try:
        found: dict[str, Any] = json.loads(content)
        if found.pop("format") != FORMAT:
            raise BackupError(
                "the backup has a format that this Postroom does not know; use the newer one that made it"
            )
        found["created_at"] = datetime.fromisoformat(found["created_at"])
        found["migrations"] = {int(number): checksum for number, checksum in found["migrations"].items()}
        found["members"] = {name: Member(**each) for name, each in found["members"].items()}
        return Manifest(**found)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BackupError(
            f"the backup's manifest cannot be read ({type(error).__name__}); use another backup"
        ) from None


def peek_manifest(path: Path) -> Manifest:
    """Read the manifest alone, without verifying what it lists. Raises BackupError."""
    try:
        with tarfile.open(path, mode="r:") as archive:
            found = archive.extractfile(MANIFEST)
            content = b"" if found is None else found.read()
    except (tarfile.TarError, OSError, EOFError, KeyError) as error:
        raise BackupError(f"{path} is not a backup, or is incomplete ({type(error).__name__}); use another") from None
    return read_manifest(content)


class ArchiveWriter:
    """Writes an archive under a temporary name, and gives it its name when it is complete."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._partial = path.with_name(f".{path.name}.partial")
        handle = open_private(self._partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        self._file: IO[bytes] = os.fdopen(handle, "wb")
        self._tar = tarfile.open(fileobj=self._file, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115
        self.members: dict[str, Member] = {}

    def add_file(self, name: str, source: Path, progress: Progress = silent) -> None:
        with source.open("rb") as file:
            self._add(name, _Hashed(file, os.fstat(file.fileno()).st_size, name, progress))

    def add_bytes(self, name: str, content: bytes) -> None:
        self._add(name, _Hashed(io.BytesIO(content), len(content), name, silent))

    def finish(self, manifest: Manifest) -> None:
        """Write the manifest, sync to disk, and give the archive its name."""
        manifest.members = self.members
        content = manifest.as_json()
        self._tar.addfile(_info(MANIFEST, len(content)), io.BytesIO(content))
        self._tar.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        os.link(self._partial, self.path)  # unlike a rename, this never replaces an existing file
        self._partial.unlink()
        sync_folder(self.path.parent)

    def discard(self) -> None:
        with contextlib.suppress(OSError):  # a failed write no longer matters
            self._file.close()
        self._partial.unlink(missing_ok=True)

    def _add(self, name: str, source: "_Hashed") -> None:
        self._tar.addfile(_info(name, source.size), source)
        self.members[name] = Member(source.size, source.digest())


class _Hashed(io.RawIOBase):
    """A file that is hashed as it is read."""

    def __init__(self, file: IO[bytes], size: int, what: str, progress: Progress) -> None:
        self._file = file
        self.size = size
        self._what = what
        self._progress = progress
        self._done = 0
        self._sha256 = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        found = self._file.read(size)
        self._sha256.update(found)
        self._done += len(found)
        self._progress(self._what, self._done, self.size)
        return found

    def digest(self) -> str:
        return self._sha256.hexdigest()


def _info(name: str, size: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, FILE_MODE
    return info


class ArchiveReader:
    """An archive that has been verified: everything in it is as the manifest says."""

    def __init__(self, path: Path, progress: Progress = silent) -> None:
        self.path = path
        try:
            self._tar = tarfile.open(path, mode="r:")  # noqa: SIM115
        except FileNotFoundError:
            raise BackupError(f"there is no file {path}; give the name of a backup") from None
        except (tarfile.TarError, OSError, EOFError) as error:
            raise BackupError(
                f"{path} is not a backup, or is incomplete ({type(error).__name__}); use another"
            ) from None
        try:
            self._infos = {info.name: info for info in self._tar.getmembers()}
            self.manifest = self._verify(progress)
        except (tarfile.TarError, OSError, EOFError) as error:
            self._tar.close()
            raise BackupError(
                f"{path} is not a backup, or is incomplete ({type(error).__name__}); use another"
            ) from None
        except BackupError:
            self._tar.close()
            raise

    def read(self, name: str) -> bytes:
        return b"".join(self._chunks(name, silent))

    def extract(self, name: str, target: Path, progress: Progress = silent) -> None:
        """Write a member to a new private file."""
        with os.fdopen(open_private(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
            for chunk in self._chunks(name, progress):
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())

    def names(self, prefix: str) -> list[str]:
        return sorted(name for name in self.manifest.members if name.startswith(prefix))

    def close(self) -> None:
        self._tar.close()

    def _verify(self, progress: Progress) -> Manifest:
        if MANIFEST not in self._infos:
            raise BackupError(f"{self.path} has no manifest: it is incomplete, or not a backup; use another")
        manifest = read_manifest(self.read(MANIFEST))
        _check_names(self._infos, manifest.members)
        for name, member in manifest.members.items():
            sha256 = hashlib.sha256()
            for chunk in self._chunks(name, progress):
                sha256.update(chunk)
            if self._infos[name].size != member.size or sha256.hexdigest() != member.sha256:
                raise BackupError(f"{name} in {self.path} is damaged: its checksum is wrong; use another backup")
        return manifest

    def _chunks(self, name: str, progress: Progress) -> "_Chunks":
        return _Chunks(self._tar, self._infos[name], progress)


class _Chunks:
    def __init__(self, tar: tarfile.TarFile, info: tarfile.TarInfo, progress: Progress) -> None:
        self._file = tar.extractfile(info)
        self._info = info
        self._progress = progress
        self._done = 0

    def __iter__(self) -> "_Chunks":
        return self

    def __next__(self) -> bytes:
        chunk = self._file.read(CHUNK) if self._file is not None else b""
        if not chunk:
            raise StopIteration
        self._done += len(chunk)
        self._progress(self._info.name, self._done, self._info.size)
        return chunk


def _check_names(infos: Mapping[str, tarfile.TarInfo], members: Mapping[str, Member]) -> None:
    """Refuse paths that lead out of the data folder, and members that the manifest does not list."""
    if set(infos) != {*members, MANIFEST}:
        raise BackupError("the content of the backup is not what its manifest lists; use another backup")
    for name, info in infos.items():
        path = PurePosixPath(name)
        if not info.isfile() or path.is_absolute() or ".." in path.parts:
            raise BackupError("the backup contains something other than plain files; use another backup")
