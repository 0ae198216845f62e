"""The Message-IDs of everything the user has sent, on disk, to recognise replies to the user.

An SQLite file of the connector, with the 64-bit hash of each id as its key. Ids are durable when `add` returns, and
memory does not grow with their number.
"""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from datetime import datetime
from hashlib import blake2b
from pathlib import Path

import orjson

from postroom.mailboxes.following.index_file import IndexFile
from postroom.sources.checkpoint import ListPosition

FILLED = 2


class SentIndex(AbstractSet[str]):
    """A set of ids, each as `<id>`. Only hashes are stored: membership can be tested, the ids cannot be listed."""

    def __init__(self, path: Path) -> None:
        self._file = IndexFile(path, _SCHEMA, "full")

    def add(self, ids: Iterable[str]) -> int:
        """Store the ids; return how many were new. Raises StoreError if they cannot be written."""
        hashes = [_hash(id) for id in ids]
        return len(self._file.run(_ADD, orjson.dumps(hashes).decode())) if hashes else 0

    @property
    def is_filled(self) -> bool:
        """Whether the whole sent folder was read, with recipients. Version 1 had only ids."""
        return self._file.run("PRAGMA user_version") == [(FILLED,)]

    def mark_filled(self) -> None:
        self._file.run(f"PRAGMA user_version = {FILLED}")

    @property
    def read_count(self) -> int:
        """How many messages of the sent folder have been read so far."""
        return int(self._file.run("SELECT coalesce(max(read_count), 0) FROM place")[0][0])

    @property
    def passed(self) -> ListPosition | None:
        """How far the sent folder has been read."""
        found = self._file.run("SELECT id, date FROM place")
        return ListPosition(found[0][0], datetime.fromisoformat(found[0][1])) if found else None

    def keep_place(self, passed: ListPosition, read_count: int) -> None:
        self._file.run(_KEEP_PLACE, passed.id, passed.date.isoformat(), read_count)

    def close(self) -> None:
        """Close the file until it is used again."""
        self._file.close()

    def __contains__(self, id: object) -> bool:
        if not isinstance(id, str):
            return False
        return bool(self._file.run("SELECT 1 FROM sent WHERE hash = ?", _hash(id)))

    def __len__(self) -> int:
        return int(self._file.run("SELECT count(*) FROM sent")[0][0])

    def __iter__(self) -> Iterator[str]:
        raise TypeError("only hashes of the ids are stored, so they cannot be listed")


_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS sent (hash INTEGER PRIMARY KEY)",
    "CREATE TABLE IF NOT EXISTS place (one INTEGER PRIMARY KEY, id TEXT, date TEXT, read_count INTEGER)",
)
_KEEP_PLACE = """
    INSERT INTO place (one, id, date, read_count) VALUES (1, ?, ?, ?)
    ON CONFLICT (one) DO UPDATE SET id = excluded.id, date = excluded.date, read_count = excluded.read_count
"""
_ADD = "INSERT INTO sent (hash) SELECT value FROM json_each(?) WHERE true ON CONFLICT DO NOTHING RETURNING 1"


def _hash(id: str) -> int:
    """A 64-bit hash. With a million ids a collision has a chance of 5 in 10^14, and would give mail too high a tier."""
    return int.from_bytes(blake2b(id.encode("utf-8", "replace"), digest_size=8).digest(), "big", signed=True)
