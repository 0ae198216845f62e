"""Which messages are in which folder, as far as the connector has reported them, and how far each folder was read.

An SQLite file of the connector. A round compares it with the mailbox: the differences are what other programs have
done. What a round has found is written in one transaction, after everything about it was reported, and new mail was
put on the reading list, which is in the same file.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from postroom.mailboxes.following import reading_list
from postroom.mailboxes.following.index_file import IndexFile
from postroom.mailboxes.following.reading_list import ReadingList

_SCHEMA = """
CREATE TABLE IF NOT EXISTS folders (
    folder BLOB PRIMARY KEY, uidvalidity INTEGER NOT NULL, uidnext INTEGER NOT NULL, modseq INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS places (
    folder BLOB NOT NULL, uid INTEGER NOT NULL, id TEXT NOT NULL, labels TEXT NOT NULL, PRIMARY KEY (folder, uid)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS places_of_id ON places (id);
CREATE TABLE IF NOT EXISTS missing (id TEXT PRIMARY KEY, labels TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS reached (only_one INTEGER PRIMARY KEY CHECK (only_one = 1), at TEXT NOT NULL);
"""


class FolderState(NamedTuple):
    """How far a folder was read: everything below `uidnext`, and its flags as of `modseq`, if it has one."""

    uidvalidity: int
    uidnext: int
    modseq: int | None


class Held(NamedTuple):
    """A message in a folder: its id, and the labels that this place gives it."""

    id: str
    labels: frozenset[str]


class FolderNews(NamedTuple):
    """The changes found in a folder: messages that are new or differ, and those that are gone."""

    folder: bytes
    state: FolderState
    held: Mapping[int, Held]
    gone: frozenset[int]


class PlaceIndex:
    """The messages of one mailbox by place. Raises StoreError if it cannot be read or written."""

    def __init__(self, path: Path) -> None:
        # After a crash of the machine an older state is as good: it is compared with the mailbox again.
        self._file = IndexFile(path, (*_SCHEMA.split(";"), *reading_list.SCHEMA), "normal")
        self.waiting = ReadingList(self._file)
        """The messages of the index that are still to be read: in the same file, so that neither is lost alone."""

    def close(self) -> None:
        """Close the file until it is used again."""
        self._file.close()

    @property
    def reached_at(self) -> datetime | None:
        """The time up to which everything has been found."""
        found = self._file.run("SELECT at FROM reached")
        return datetime.fromisoformat(found[0][0]) if found else None

    def state(self, folder: bytes) -> FolderState | None:
        found = self._file.run("SELECT uidvalidity, uidnext, modseq FROM folders WHERE folder = ?", folder)
        return FolderState(*found[0]) if found else None

    def folders(self) -> list[bytes]:
        return [folder for (folder,) in self._file.run("SELECT folder FROM folders")]

    def uids_in(self, folder: bytes) -> frozenset[int]:
        return frozenset(uid for (uid,) in self._file.run("SELECT uid FROM places WHERE folder = ?", folder))

    def uids_within(self, folder: bytes, ranges: Iterable[tuple[int, int]]) -> frozenset[int]:
        """The UIDs in the index that are in one of these ranges."""
        sql = "SELECT uid FROM places WHERE folder = ? AND uid BETWEEN ? AND ?"
        return frozenset(uid for first, last in ranges for (uid,) in self._file.run(sql, folder, first, last))

    def held_at(self, folder: bytes, uids: Iterable[int]) -> dict[int, Held]:
        """Those of these messages that the index knows."""
        sql = "SELECT uid, id, labels FROM places WHERE folder = ? AND uid IN (SELECT value FROM json_each(?))"
        rows = self._file.run(sql, folder, orjson.dumps(sorted(uids)).decode())
        return {uid: Held(id, _labels(labels)) for uid, id, labels in rows}

    def labels_by_place(self, id: str) -> dict[tuple[bytes, int], frozenset[str]]:
        rows = self._file.run("SELECT folder, uid, labels FROM places WHERE id = ?", id)
        return {(folder, uid): _labels(labels) for folder, uid, labels in rows}

    def places_of(self, ids: Sequence[str]) -> list[tuple[str, bytes, int, int]]:
        """Where these messages are: id, folder, UIDVALIDITY and UID."""
        sql = (
            "SELECT id, folder, uidvalidity, uid FROM places JOIN folders USING (folder) "
            "WHERE id IN (SELECT value FROM json_each(?))"
        )
        return [(row[0], row[1], row[2], row[3]) for row in self._file.run(sql, orjson.dumps(ids).decode())]

    def missing(self) -> dict[str, frozenset[str]]:
        """The messages that were in no folder at the end of the last round, with the labels that they had."""
        return {id: _labels(labels) for id, labels in self._file.run("SELECT id, labels FROM missing")}

    def settle(
        self,
        news: Iterable[FolderNews],
        missing: Mapping[str, frozenset[str]],
        found_again: Iterable[str],
        at: datetime | None,
    ) -> None:
        """Write what a round has found. `at` is the time up to which all is found, if this is all."""
        statements: list[tuple[str, tuple[Any, ...]]] = []
        for each in news:
            statements += _news_statements(each)
        statements += [("DELETE FROM missing WHERE id = ?", (id,)) for id in found_again]
        statements += [
            ("INSERT OR REPLACE INTO missing VALUES (?, ?)", (id, _text(had))) for id, had in missing.items()
        ]
        if at is not None:
            statements.append(("INSERT OR REPLACE INTO reached VALUES (1, ?)", (at.isoformat(),)))
        self._file.run_all(statements)

    def forget_folder(self, folder: bytes) -> None:
        """The folder no longer exists; what was in it is settled."""
        both = ("DELETE FROM places WHERE folder = ?", "DELETE FROM folders WHERE folder = ?")
        self._file.run_all([(each, (folder,)) for each in both])


def _news_statements(news: FolderNews) -> list[tuple[str, tuple[Any, ...]]]:
    folder = news.folder
    held = [[uid, each.id, sorted(each.labels)] for uid, each in news.held.items()]
    return [
        (
            "DELETE FROM places WHERE folder = ? AND uid IN (SELECT value FROM json_each(?))",
            (folder, orjson.dumps(sorted(news.gone)).decode()),
        ),
        (
            "INSERT OR REPLACE INTO places SELECT ?, value ->> 0, value ->> 1, value -> 2 FROM json_each(?)",
            (folder, orjson.dumps(held).decode()),
        ),
        ("INSERT OR REPLACE INTO folders VALUES (?, ?, ?, ?)", (folder, *news.state)),
    ]


def _labels(text: str) -> frozenset[str]:
    return frozenset(orjson.loads(text))


def _text(labels: frozenset[str]) -> str:
    return orjson.dumps(sorted(labels)).decode()
