"""SQLite's write-ahead log, kept short whatever readers do.

**Why it grows.** A commit appends to the log. A checkpoint copies the log into the database, but only up to the oldest
snapshot that somebody still reads, and the log starts again at its beginning only at a moment when all of it is copied
and nobody reads from it. While readers overlap, that moment never comes.

**How it is kept short.** Three steps, each taken where it delays the others least:

1. From `PASS_BYTES` on, a separate thread copies (passive checkpoints, which wait for nothing and block nothing).
2. From `RESTART_BYTES` on, readers that are older than `SNAPSHOT_S` end their snapshot by themselves, in every process:
   each checks the size of the file regularly. The read is restarted once the log is short again.
3. The writer then restarts the log between two commits. It waits at most `PATIENCE_S` for the remaining readers,
   and little is left to copy, so no write is delayed for long. If it fails it tries again a few MiB later.

From `CROWDED_BYTES` on the writer also gives the copying thread a head start before each commit, in case it writes
faster than the disk can copy.

**Other programs** do not check, and a frozen process cannot. Their snapshot is detected when for `STUCK_S` nothing more
could be copied, though none of our own readers is in the way. Our readers are then not interrupted until copying goes
on. The log grows with every write, which does no harm while the disk has room for it (see `intake/disk.py`). From
`LONG_BYTES` on the writer waits longer for a restart: `LONGEST_PATIENCE_S` at most, and a twentieth of the time. While
it waits nothing is written, so whoever begins to read then reads from the database itself, and the log is free as soon
as the snapshots of before have ended, however they overlap.
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import apsw

from postroom.core.errors import StoreError
from postroom.store.engine.sqlite_file import descriptor_of, identity_of

MIB = 1024 * 1024
PASS_BYTES = 16 * MIB
RESTART_BYTES = 64 * MIB
CROWDED_BYTES = 88 * MIB
# From here on the log is long because of something outside of this process.
LONG_BYTES = 112 * MIB
# The file is truncated to this when SQLite restarts the log, so that its size shows the length of the log.
KEPT_BYTES = 32 * MIB

FIRST_SNAPSHOT_LOCK, LAST_SNAPSHOT_LOCK = 123, 127

STEP_BYTES = 4 * MIB
LITTLE_BYTES = 1 * MIB
SNAPSHOT_S = 0.02
PATIENCE_S = 0.05
LONG_PATIENCE_S = 2.0
LONGEST_PATIENCE_S = 5.0
PATIENT_SHARE = 0.05
HEAD_START_S = 0.04
GIVE_WAY_S = 0.02
TRY_AGAIN_S = 1.0
STUCK_S = 1.0


def log_bytes(database: Path) -> int:
    """The size of the log of this database; 0 if there is none."""
    try:
        return database.with_name(f"{database.name}-wal").stat().st_size
    except OSError:
        return 0


def snapshot_holders(database: Path) -> list[int]:
    """The processes that hold a snapshot now, as shown by Linux; empty elsewhere.

    SQLite marks a snapshot by a read lock on one of five bytes of the -shm file, the first for one that needs no log.
    """
    found: set[int] = set()
    with contextlib.suppress(OSError, ValueError):
        inode = database.with_name(f"{database.name}-shm").stat().st_ino
        for line in Path("/proc/locks").read_text().splitlines():
            words = line.split()
            if len(words) == 8 and words[1] == "POSIX" and words[5].rpartition(":")[2] == str(inode):
                first, last = int(words[6]), int(words[7])
                if words[3] == "READ" and first <= LAST_SNAPSHOT_LOCK and last >= FIRST_SNAPSHOT_LOCK:
                    found.add(int(words[4]))
    return sorted(found)


class WriteAheadLog:
    """The log of one database, as maintained by one process."""

    def __init__(self, database: Path, connect: Callable[[], apsw.Connection], busy_timeout_ms: int) -> None:
        self.snapshots = Snapshots()
        self._database = database
        self._connect = connect
        self._busy_timeout_ms = busy_timeout_ms
        self._page = 4096
        self._length = 0
        self._copied = 0
        self._next_pass = PASS_BYTES
        self._next_restart = RESTART_BYTES
        self._restart_at = 0.0
        self._advanced_at = time.monotonic()
        self._held_elsewhere = False
        self._wanted = threading.Event()
        self._passed = threading.Event()
        self._turn = threading.Lock()
        self._closing = False
        self._thread: threading.Thread | None = None

    @property
    def size(self) -> int:
        return log_bytes(self._database)

    @property
    def is_long(self) -> bool:
        """Whether the log should be restarted, judged by this process's own commits."""
        return self._length >= RESTART_BYTES

    @property
    def held_elsewhere(self) -> bool:
        """Whether the log cannot be restarted for a reason outside of this process."""
        return self._held_elsewhere

    def attach(self, connection: apsw.Connection) -> None:
        """Watch the commits of the writer. SQLite itself then makes no checkpoints in the middle of a commit."""
        self._page = connection.execute("PRAGMA page_size").fetchall()[0][0]
        connection.set_wal_hook(self._on_commit)

    def keep_short(self, writer: apsw.Connection) -> None:
        """Restart the log if it is long. Called by the writer, between two commits."""
        if self._length >= self._next_pass or (self.is_long and self._behind > LITTLE_BYTES):
            self._next_pass = self._length + STEP_BYTES
            self._ask_for_pass()
        if CROWDED_BYTES <= self._length < LONG_BYTES:
            self._ask_for_pass()
            self._passed.wait(HEAD_START_S)
        if self.is_long and self._is_time_to_restart():
            self._restart(writer)

    def close(self) -> None:
        self._closing = True
        self._wanted.set()
        if self._thread is not None:
            self._thread.join()

    @property
    def _behind(self) -> int:
        return self._length - self._copied

    def _on_commit(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        length = pages * self._page
        if length < self._length:
            self._on_restart()
        self._length = length
        return 0

    def _on_restart(self) -> None:
        self._length = 0
        self._next_pass, self._next_restart, self._restart_at = PASS_BYTES, RESTART_BYTES, 0.0
        self._has_copied(0)

    def _is_time_to_restart(self) -> bool:
        has_grown = self._next_restart <= self._length < LONG_BYTES
        if not has_grown and time.monotonic() < self._restart_at:
            return False
        # The writer waits while the rest is copied, so the rest should be small.
        return self._behind <= LITTLE_BYTES or self._length >= LONG_BYTES

    @property
    def _patience_s(self) -> float:
        """How long the writer waits for other readers: longer, the longer the log is."""
        if self._length < LONG_BYTES:
            return PATIENCE_S
        return min(LONGEST_PATIENCE_S, LONG_PATIENCE_S * self._length / LONG_BYTES)

    def _restart(self, writer: apsw.Connection) -> None:
        began = time.monotonic()
        deadline = began + self._patience_s
        asked = False

        def busy(_times: int) -> bool:
            nonlocal asked
            asked = True
            time.sleep(0.001)
            return time.monotonic() < deadline

        if not self._turn.acquire(timeout=PATIENCE_S):
            return
        try:
            writer.set_busy_handler(busy)
            writer.wal_checkpoint("main", apsw.SQLITE_CHECKPOINT_TRUNCATE)
            self._on_restart()
        except apsw.BusyError:
            self._next_restart = self._length + STEP_BYTES
            ended = time.monotonic()
            self._restart_at = ended + max(TRY_AGAIN_S, (ended - began) / PATIENT_SHARE)
            self._judge_standstill(ours=self.snapshots.standing)
            if not asked:  # another process restarts it: it needs the writer's lock, which we would only take again
                time.sleep(GIVE_WAY_S)
        finally:
            writer.set_busy_timeout(self._busy_timeout_ms)
            self._turn.release()

    def _ask_for_pass(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._copy_forever, name="postroom-checkpoint", daemon=True)
            self._thread.start()
        self._passed.clear()
        self._wanted.set()

    def _copy_forever(self) -> None:
        connection: apsw.Connection | None = None
        while self._wanted.wait() and not self._closing:
            self._wanted.clear()
            with contextlib.suppress(apsw.Error, StoreError, OSError):  # the writer meets it too, and can report it
                connection = connection or self._connect()
                with self._turn:
                    self._copy(connection)
            self._passed.set()
        if connection is not None:
            connection.close()

    def _copy(self, connection: apsw.Connection) -> None:
        ours = self.snapshots.standing
        length, copied = connection.wal_checkpoint("main", apsw.SQLITE_CHECKPOINT_PASSIVE)
        if copied >= length:
            self._restart_at = 0.0  # no old snapshot is left, so a restart will hardly have to wait
        if copied * self._page > self._copied:
            # SQLite leaves that to the last pass, for which the writer must wait.
            _sync(self._database)
            self._has_copied(copied * self._page)
        elif copied < length:
            self._judge_standstill(ours)

    def _has_copied(self, copied: int) -> None:
        self._copied = copied
        self._advanced_at = time.monotonic()
        self._held_elsewhere = False

    def _judge_standstill(self, ours: int) -> None:
        """Note that nothing could be copied, or the log not restarted, with this many of our own readers active."""
        if ours == 0 and self.is_long and time.monotonic() - self._advanced_at >= STUCK_S:
            self._held_elsewhere = True


class Snapshots:
    """Counts the open snapshots of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.standing = 0

    def __enter__(self) -> None:
        with self._lock:
            self.standing += 1

    def __exit__(self, *_error: object) -> None:
        with self._lock:
            self.standing -= 1


def _sync(file: Path) -> None:
    """Flush this file to disk through a descriptor that SQLite itself has open.

    One of our own would not do: when it is closed, POSIX drops every lock that this process has on the file. Without
    /proc nothing is done, and the last pass takes longer.
    """
    with contextlib.suppress(OSError):
        os.fsync(descriptor_of(identity_of(file)))
