"""Databases of released versions, frozen as text: which migrations a version had, and rows of its tables.

`frozen/VERSION.DIALECT.sql` begins with a line for each migration (number, name, checksum), then rows as INSERTs. The
schema itself is the text of these migrations, which never changes (`test_schema_text.py`). `0.1.0-early` is what people
ran before that release.

Freeze the version that is about to be released, on its last commit (this takes minutes):

    .venv/bin/python tests/support/store/frozen_databases.py 0.2.0
"""

import asyncio
import re
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

import asyncpg

from postroom.store.engine.database import Database, Dialect
from postroom.store.engine.migrate import Migration, apply_all, migrations
from postroom.store.engine.opening import FILE, connect_database
from postroom.store.engine.sqlite_connection import connect
from support.clocks import ManualClock
from support.postgres import PostgresServer
from support.store.dump import Dump, dump
from support.store.fault_cases import CASES
from support.store.job_setup import JobSetup

FOLDER = Path(__file__).with_name("frozen")
_MIGRATION = re.compile(r"^-- (\d+) (\w+) ([0-9a-f]{64})$", re.MULTILINE)
PART = "\n\n-- another database:\n"
"""Some tables can only be filled where others are empty, so that several databases are frozen together."""
# Written by the migrations themselves, or about connections that have ended.
NOT_FROZEN = ("schema_migrations", "receipts", "sqlite_sequence")
# What no case of a verb leaves behind. Both databases read it, also in the frozen file.
ALSO = """
INSERT INTO approval_slots SELECT id, created_at FROM actions ORDER BY id LIMIT 1;
INSERT INTO backfill_found SELECT id, 'receipts', 2025, 12 FROM backfill_jobs ORDER BY id LIMIT 1;
INSERT INTO directions (id, content, created_at, updated_at)
    SELECT id, 'Keep what my children send.', created_at, created_at FROM accounts ORDER BY id LIMIT 1;
INSERT INTO message_categories SELECT id, 'receipts' FROM messages ORDER BY id LIMIT 1;
INSERT INTO message_header_ids SELECT '<one@example.com>', id FROM messages ORDER BY id LIMIT 1;
INSERT INTO model_waits SELECT id, '2026-11-15', 'sender', 'a@b.example', 5, 4, created_at
    FROM messages ORDER BY id LIMIT 1;
INSERT INTO outbound_evenness VALUES ('2026-11-15T08:00:00.000000Z', 3, 2, 0.25, 0.75);
INSERT INTO rollup_spans VALUES ('waited', '2026-11-15T08:00:00.000000Z', 'q', 'n', 'e', 4, 2, 30);
INSERT INTO strikes VALUES ('acme', 'bob@example.org', '2026-11-15', '550', NULL, '2026-11-15T08:00:00.000000Z');
"""
EACH = "\nINSERT INTO decision_rules SELECT id, id, 'Receipts' FROM decisions ORDER BY id LIMIT 1;"
_COLUMNS: dict[Dialect, str] = {
    "sqlite": """
        SELECT t.name, group_concat(c.name, ',') FROM sqlite_schema t JOIN pragma_table_xinfo(t.name) c
        WHERE t.type = 'table' AND t.sql NOT LIKE 'CREATE VIRTUAL%' AND c.hidden = 0 GROUP BY 1 ORDER BY 1""",
    "postgres": """
        SELECT table_schema || '.' || table_name, string_agg(column_name, ',' ORDER BY ordinal_position)
        FROM information_schema.columns JOIN pg_tables ON (schemaname, tablename) = (table_schema, table_name)
        WHERE table_schema IN ('postroom', 'switchboard') AND is_generated = 'NEVER' GROUP BY 1 ORDER BY 1""",
}


class Frozen(NamedTuple):
    """What a version left in one kind of database."""

    version: str
    dialect: Dialect

    @property
    def file(self) -> Path:
        return FOLDER / f"{self.version}.{self.dialect}.sql"

    def migrations(self) -> tuple[Migration, ...]:
        """The migrations that this version had. They must be unaltered today."""
        listed = _MIGRATION.findall(self.file.read_text("utf-8"))
        known = migrations(self.dialect)[: len(listed)]
        assert [(f"{each.version}", each.name, each.checksum) for each in known] == listed
        return known

    def parts(self) -> list[str]:
        return self.file.read_text("utf-8").split(PART)[1:]

    async def lay(self, part: str, folder: Path, url: str | None) -> None:
        """Make a new database what this version left."""
        database = connect_database(folder, url)
        await database.run(apply_all(self.dialect, self.migrations()))
        await database.close()
        await _insert(folder, url, part)


FROZEN = [Frozen(each.stem.rpartition(".")[0], each.stem.rpartition(".")[2]) for each in sorted(FOLDER.glob("*.sql"))]  # type: ignore[arg-type]


async def _insert(folder: Path, url: str | None, rows: str) -> None:
    """Insert the rows as they are: nothing that a trigger would add, and in any order."""
    if url is None:
        connection = connect(folder / FILE)
        connection.execute("BEGIN")
        connection.execute("PRAGMA defer_foreign_keys = ON")
        triggers = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        for name, _ in _frozen_tables(connection.execute(_COLUMNS["sqlite"]).fetchall()):
            connection.execute(f"DELETE FROM {name}")
        connection.execute(rows)
        for _, text in triggers:
            connection.execute(text)
        connection.execute("COMMIT")
        connection.close()
        return
    server = await asyncpg.connect(url)
    try:
        await server.execute("SET session_replication_role = replica; SET search_path = postroom, switchboard")
        for name, _ in _frozen_tables(await server.fetch(_COLUMNS["postgres"])):
            await server.execute(f"DELETE FROM {name}")
        await server.execute(rows)
    finally:
        await server.close()


def _frozen_tables(found: Iterable[Any]) -> list[tuple[str, str]]:
    return [(name, columns) for name, columns in found if name.split(".")[-1] not in NOT_FROZEN]


async def freeze(version: str, last: int | None) -> None:
    """Fill a database by the cases of all writing verbs, as few as fill every table, and write down its rows."""
    with tempfile.TemporaryDirectory(prefix="frozen-") as name:
        server = PostgresServer(Path(name))
        server.start()
        try:
            for dialect in ("sqlite", "postgres"):
                await _Freezer(Frozen(version, dialect), last, server, Path(name) / "folders" / dialect).freeze()
        finally:
            server.stop()


class _Freezer:
    def __init__(self, frozen: Frozen, last: int | None, server: PostgresServer, folder: Path) -> None:
        self._frozen = frozen
        self._known = migrations(frozen.dialect)[:last]
        self._server = server
        self._folder = folder
        self._count = 0

    async def freeze(self) -> None:
        fills = {case: await self._filled([case]) for case in CASES.values()}
        missing, parts = set[str]().union(*fills.values()), list[str]()
        while missing:
            database, folder, url = await self._new()
            wanted = missing
            for case in sorted(fills, key=lambda case: -len(fills[case] & missing)):
                if fills[case] & wanted:
                    await self._run(database, [case])
                    wanted = missing - _names(await dump(database))
            assert wanted < missing
            missing = wanted
            await database.close()
            parts.append("\n".join(await _rows(folder, url)) + EACH)
        parts[0] += ALSO.rstrip()
        lines = [f"-- {each.version} {each.name} {each.checksum}" for each in self._known]
        self._frozen.file.parent.mkdir(exist_ok=True)
        self._frozen.file.write_text(PART.join(["\n".join(lines), *parts]) + "\n", "utf-8")

    async def _filled(self, cases: list[Any]) -> set[str]:
        database, _, _ = await self._new()
        try:
            await self._run(database, cases)
            return _names(await dump(database))
        finally:
            await database.close()

    async def _run(self, database: Database, cases: list[Any]) -> None:
        for case in cases:
            try:
                await database.run(await case(JobSetup(database, ManualClock())))
            except Exception as error:  # it wants the other database, or one of its own
                print(f"{case.__name__}: {type(error).__name__}: {error}")

    async def _new(self) -> tuple[Database, Path, str | None]:
        self._count += 1
        folder, url = self._folder / str(self._count), None
        folder.mkdir(parents=True)
        if self._frozen.dialect == "postgres":
            self._server.sql(f"CREATE DATABASE frozen_{self._count}")
            url = self._server.url(f"frozen_{self._count}")
        database = connect_database(folder, url)
        await database.run(apply_all(self._frozen.dialect, self._known))
        return database, folder, url


def _names(found: Dump) -> set[str]:
    return {name for name, rows in found.items() if rows}


async def _rows(folder: Path, url: str | None) -> list[str]:
    if url is None:
        connection = connect(folder / FILE, read_only=True)
        found: list[str] = []
        for name, columns in _frozen_tables(connection.execute(_COLUMNS["sqlite"]).fetchall()):
            quoted = " || ', ' || ".join(f'quote("{each}")' for each in columns.split(","))
            found += [
                f"INSERT INTO {name} ({columns}) VALUES ({values});"
                for (values,) in connection.execute(f"SELECT {quoted} FROM {name}").fetchall()
            ]
        connection.close()
        return found
    server = await asyncpg.connect(url)
    try:
        found = []
        for name, columns in _frozen_tables(await server.fetch(_COLUMNS["postgres"])):
            quoted = ", ".join(f'quote_nullable("{each}"::text)' for each in columns.split(","))
            rows = await server.fetch(f"SELECT concat_ws(', ', {quoted}) FROM {name}")
            found += [
                f"INSERT INTO {name} ({columns}) OVERRIDING SYSTEM VALUE VALUES ({values});" for (values,) in rows
            ]
        return found
    finally:
        await server.close()


if __name__ == "__main__":
    asyncio.run(freeze(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None))
