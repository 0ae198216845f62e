"""The Message-IDs of everything the user has sent, on disk, to recognise replies to the user.

An SQLite file of the connector, with the 64-bit hash of each id as its key. Ids are durable when `add` returns, and
memory does not grow with their number. The file can be rebuilt from the mailbox, so a damaged one is set aside.
"""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

import apsw
import orjson
import structlog

from postroom.connectors.checkpoint import ListPosition
from postroom.core.errors import StoreError
from postroom.system.private_files import private_folder

log = structlog.get_logger()

WAIT_MS = 5000
CACHE_KIB = 2048
FILLED = 2


class SentIndex(AbstractSet[str]):
    """A set of ids, each as `<id>`. Only hashes are stored: membership can be tested, the ids cannot be listed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        private_folder(path.parent)
        try:
            self._connection = _opened(path)
        except (apsw.NotADBError, apsw.CorruptError):
            _set_aside(path)
            self._connection = _opened(path)

    def add(self, ids: Iterable[str]) -> int:
        """Store the ids; return how many were new. Raises StoreError if they cannot be written."""
        hashes = [_hash(id) for id in ids]
        return len(self._written(_ADD, orjson.dumps(hashes).decode())) if hashes else 0

    @property
    def is_filled(self) -> bool:
        """Whether the whole sent folder was read, with recipients. Version 1 had only ids."""
        return self._read("PRAGMA user_version") == [(FILLED,)]

    def mark_filled(self) -> None:
        self._written(f"PRAGMA user_version = {FILLED}")

    @property
    def read_count(self) -> int:
        """How many messages of the sent folder have been read so far."""
        return int(self._read("SELECT coalesce(max(read_count), 0) FROM place")[0][0])

    @property
    def passed(self) -> ListPosition | None:
        """How far the sent folder has been read."""
        found = self._read("SELECT id, date FROM place")
        return ListPosition(found[0][0], datetime.fromisoformat(found[0][1])) if found else None

    def keep_place(self, passed: ListPosition, read_count: int) -> None:
        self._written(_KEEP_PLACE, passed.id, passed.date.isoformat(), read_count)

    def close(self) -> None:
        self._connection.close()

    def __contains__(self, id: object) -> bool:
        if not isinstance(id, str):
            return False
        return bool(self._read("SELECT 1 FROM sent WHERE hash = ?", _hash(id)))

    def __len__(self) -> int:
        return int(self._read("SELECT count(*) FROM sent")[0][0])

    def __iter__(self) -> Iterator[str]:
        raise TypeError("only hashes of the ids are stored, so they cannot be listed")

    def _read(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        return self._executed("read", statement, parameters)

    def _written(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        return self._executed("written", statement, parameters)

    def _executed(self, verb: str, statement: str, parameters: tuple[object, ...]) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(statement, parameters).fetchall()
        except apsw.Error as error:
            raise StoreError(
                f"{self._path} cannot be {verb} ({error}); check that its disk works and has room"
            ) from error


_KEEP_PLACE = """
    INSERT INTO place (one, id, date, read_count) VALUES (1, ?, ?, ?)
    ON CONFLICT (one) DO UPDATE SET id = excluded.id, date = excluded.date, read_count = excluded.read_count
"""
_ADD = "INSERT INTO sent (hash) SELECT value FROM json_each(?) WHERE true ON CONFLICT DO NOTHING RETURNING 1"


def _hash(id: str) -> int:
    """A 64-bit hash. With a million ids a collision has a chance of 5 in 10^14, and would give mail too high a tier."""
    return int.from_bytes(blake2b(id.encode("utf-8", "replace"), digest_size=8).digest(), "big", signed=True)


def _opened(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    try:
        connection.set_busy_timeout(WAIT_MS)
        for statement in (
            "PRAGMA journal_mode = wal",
            "PRAGMA synchronous = full",
            f"PRAGMA cache_size = -{CACHE_KIB}",
            "CREATE TABLE IF NOT EXISTS sent (hash INTEGER PRIMARY KEY)",
            "CREATE TABLE IF NOT EXISTS place (one INTEGER PRIMARY KEY, id TEXT, date TEXT, read_count INTEGER)",
        ):
            connection.execute(statement).fetchall()
        if (verdict := connection.execute("PRAGMA quick_check").fetchall()) != [("ok",)]:
            raise apsw.CorruptError(str(verdict[:3]))
        # The check has read all of it; a process may hold the indexes of a thousand accounts that rest.
        connection.execute("PRAGMA shrink_memory").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def _set_aside(path: Path) -> None:
    log.warning("connector.sent_index_damaged", file=path.name)
    path.replace(path.with_name(f"{path.name}.damaged"))
    for suffix in ("-wal", "-shm"):
        path.with_name(f"{path.name}{suffix}").unlink(missing_ok=True)
