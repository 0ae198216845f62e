"""Checks that the open SQLite file is still the one that others find under its name.

An open file stays usable when its name is gone or leads to another file: commits succeed, but nobody can ever read
them. So after each commit, before it is acknowledged, the names are checked: the database, its write-ahead log and its
index must be the files that were opened. Reads are checked alike, before their result is believed: in a file that
somebody else has written every token is unknown.

A file that is overwritten in place keeps its identity. It is detected like this: the database is only ever written by a
checkpoint, and a checkpoint of any process shows in the index of the log (how much of the log is copied, and the salts,
which change with each restart). A database that was written while neither changed was written by another program. The
log itself must be as long as its index says, and have the same salts.

The files are read through the descriptors that SQLite has open, which can be found only on Linux: opening and closing
another one would drop the locks of the whole process. Elsewhere only the names are compared.
"""

import contextlib
import os
import sys
import threading
from pathlib import Path
from typing import NamedTuple

import apsw
import structlog

from postroom.core.errors import DatabaseReplaced

log = structlog.get_logger()

Identity = tuple[int, int]

_INDEX_BYTES = 132  # two copies of the header, then the state of checkpoints
_LOG_HEADER_BYTES = 32
_FRAME_HEADER_BYTES = 24
_SALT_IN_LOG = slice(16, 24)


class _Index(NamedTuple):
    """The state of the log, as its index has it."""

    frames: int
    page: int
    salts: bytes
    copied: int
    being_copied: int

    @property
    def is_quiet(self) -> bool:
        """Whether no checkpoint is writing to the database."""
        return self.being_copied <= self.copied


class SqliteFile:
    """The file of a database that this process has open."""

    def __init__(self, path: Path, connection: apsw.Connection) -> None:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # now log and index are open too
        self._path = path
        self._log, self._index = (path.with_name(f"{path.name}-{end}") for end in ("wal", "shm"))
        self._opened = {name: identity_of(name) for name in (path, self._log, self._index)}
        self._descriptors: dict[Path, int] = {}
        self._seen: tuple[_Index, tuple[int, int]] | None = None
        self._one_at_a_time = threading.Lock()
        self._lost: str | None = self._what_is_wrong()

    @property
    def is_lost(self) -> bool:
        return self._lost is not None

    def check(self) -> None:
        """Raise DatabaseReplaced once the file was replaced, and from then on. Called by the writer and all readers."""
        with self._one_at_a_time:
            was_lost, self._lost = self.is_lost, self._lost or self._what_is_wrong()
        if self._lost is not None:
            if not was_lost:
                log.error("database.replaced", path=str(self._path), why=self._lost)
            raise DatabaseReplaced(
                f"{self._path} is no longer the database that was opened: {self._lost}; nothing is accepted any more. "
                "Stop Postroom, put the right file in its place (without -wal and -shm of another), and start it again"
            )

    def _what_is_wrong(self) -> str | None:
        for name, opened in self._opened.items():
            found = identity_of(name)
            if found is None:
                return f"{name.name} is gone"
            if found != opened:
                return f"{name.name} is another file"
        return self._what_is_overwritten()

    def _what_is_overwritten(self) -> str | None:
        before = self._read_index()
        try:
            database, log = os.stat(self._path), os.stat(self._log)
        except OSError:
            return "it is gone"
        now = self._read_index()
        if before is None or now is None or before != now or not now.is_quiet:
            self._seen = None
            return None
        if now.frames and log.st_size < _LOG_HEADER_BYTES + now.frames * (now.page + _FRAME_HEADER_BYTES):
            return f"{self._log.name} was cut off"
        header = self._read(self._log, _LOG_HEADER_BYTES)
        if now.frames and header is not None and header[_SALT_IN_LOG] != now.salts and self._read_index() == now:
            return f"{self._log.name} was overwritten"
        written = (database.st_mtime_ns, database.st_size)
        seen, self._seen = self._seen, (now, written)
        if seen is not None and seen[1] != written and _same_checkpoints(seen[0], now):
            return "it was overwritten"
        return None

    def _read_index(self) -> _Index | None:
        raw = self._read(self._index, _INDEX_BYTES)
        if raw is None or len(raw) < _INDEX_BYTES:
            return None
        page = int.from_bytes(raw[14:16], sys.byteorder)
        frames, copied, being_copied = (int.from_bytes(raw[at : at + 4], sys.byteorder) for at in (16, 96, 128))
        return _Index(frames, 65536 if page == 1 else page, raw[32:40], copied, being_copied)

    def _read(self, file: Path, count: int) -> bytes | None:
        """The beginning of a file, through a descriptor of SQLite's; None if there is none."""
        with contextlib.suppress(OSError):
            descriptor = self._descriptors.get(file)
            if descriptor is None or not _is(descriptor, self._opened[file]):
                descriptor = self._descriptors[file] = descriptor_of(self._opened[file])
            return os.pread(descriptor, count, 0)
        return None


def _same_checkpoints(before: _Index, now: _Index) -> bool:
    return (before.salts, before.copied, before.being_copied) == (now.salts, now.copied, now.being_copied)


def identity_of(file: Path) -> Identity | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _is(descriptor: int, identity: Identity | None) -> bool:
    with contextlib.suppress(OSError):
        found = os.fstat(descriptor)
        return (found.st_dev, found.st_ino) == identity
    return False


def descriptor_of(identity: Identity | None) -> int:
    """A descriptor that this process has open for the file. Raises OSError if there is none, or no way to find it."""
    for name in os.listdir("/proc/self/fd"):
        if _is(int(name), identity):
            return int(name)
    raise FileNotFoundError("no descriptor for it is open")
