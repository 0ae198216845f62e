"""A database of every released version becomes today's: the schema of a new one, and every row as it was."""

from pathlib import Path

import apsw
import asyncpg
import pytest

from postroom.store.engine.database import Database
from postroom.store.engine.migrate import migrate, migrations
from postroom.store.engine.opening import FILE, connect_database
from support.postgres import PostgresServer
from support.store.dump import Dump, dump
from support.store.frozen_databases import FROZEN, NOT_FROZEN, Frozen

# A migration that changes rows of a release names their tables here, and has a test of its own.
CHANGED: dict[int, set[str]] = {}
_OF_POSTGRES = """
    SELECT format('column %s.%s %s %s %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
        pg_get_expr(d.adbin, d.adrelid))
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
    WHERE relnamespace::regnamespace::text IN ('postroom', 'switchboard') AND attnum > 0 AND NOT attisdropped
    UNION ALL SELECT format('constraint %s %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
    FROM pg_constraint WHERE connamespace::regnamespace::text IN ('postroom', 'switchboard')
    UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname IN ('postroom', 'switchboard')
    UNION ALL SELECT pg_get_triggerdef(oid) || tgenabled::text FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL SELECT pg_get_functiondef(oid) FROM pg_proc
    WHERE pronamespace::regnamespace::text IN ('postroom', 'switchboard')
    UNION ALL SELECT viewname || definition FROM pg_views WHERE schemaname IN ('postroom', 'switchboard')"""


async def _schema(folder: Path, url: str | None) -> set[str]:
    if url is None:
        connection = apsw.Connection(str(folder / FILE), flags=apsw.SQLITE_OPEN_READONLY)
        found = connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
        connection.close()
        return {" ".join(text.split()) for (text,) in found}
    server = await asyncpg.connect(url)
    try:
        return {text for (text,) in await server.fetch(_OF_POSTGRES)}
    finally:
        await server.close()


async def _read(database: Database) -> Dump:
    """Every row that was frozen, without the columns that migrations have added since."""
    found = await dump(database)
    return {name: rows for name, rows in found.items() if name.split(".")[-1] not in NOT_FROZEN}


async def _upgrade(frozen: Frozen, part: str, folder: Path, url: str | None) -> set[str]:
    """Lay what the version left, bring it up to date, and compare; return the names of the tables without rows."""
    await frozen.lay(part, folder, url)
    database = connect_database(folder, url)
    try:
        before = await _read(database)
        following = migrations(frozen.dialect)[len(frozen.migrations()) :]
        assert await migrate(database) == [each.name for each in following]
        after = await _read(database)
    finally:
        await database.close()
    changed = set[str]().union(*(CHANGED.get(each.version, ()) for each in following))
    for name, rows in before.items():
        assert after[name] == rows or name.split(".")[-1] in changed, name
    return {name.split(".")[-1] for name, rows in before.items() if not rows}


@pytest.mark.parametrize("frozen", FROZEN, ids=lambda each: f"{each.version}-{each.dialect}")
async def test_a_database_of_a_release_becomes_todays_and_keeps_every_row(
    frozen: Frozen, postgres: PostgresServer, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = request.getfixturevalue("postgres_url") if frozen.dialect == "postgres" else None
    database = connect_database(tmp_path / "new", url)
    await migrate(database)
    await database.close()
    fresh, empty = await _schema(tmp_path / "new", url), list[set[str]]()
    for number, part in enumerate(frozen.parts()):
        if url is not None:
            drop = "DROP SCHEMA postroom CASCADE; DROP SCHEMA switchboard CASCADE"
            postgres.sql(drop, database=url.rpartition("/")[2])
        empty.append(await _upgrade(frozen, part, tmp_path / str(number), url))
        assert await _schema(tmp_path / str(number), url) == fresh
    assert set.intersection(*empty) == set(), "every table had rows in one of them"
