"""The whole content of a database, to check that nothing has changed."""

from collections.abc import Sequence
from typing import Any

import apsw

from postroom.store.engine.database import Database, Script, Text, transaction
from postroom.store.engine.postgres import PostgresDatabase
from postroom.store.engine.sqlite import SqliteDatabase

Dump = dict[str, list[str]]


async def dump(database: Database, *, receipts: bool = False) -> Dump:
    """Every row of every table, as text, in an order that does not depend on where it lies.

    Receipts (PostgreSQL) are left out unless asked for: a transaction that changes nothing still has one.
    """
    if isinstance(database, SqliteDatabase):
        return _dump_sqlite(database)
    assert isinstance(database, PostgresDatabase)
    found = await _dump_postgres(database)
    return found if receipts else {name: rows for name, rows in found.items() if name != "postroom.receipts"}


def _dump_sqlite(database: SqliteDatabase) -> Dump:
    connection = apsw.Connection(str(database.path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").fetchall()
        return {name: _sorted(connection.execute(f'SELECT * FROM "{name}"').fetchall()) for (name,) in tables}
    finally:
        connection.close()


async def _dump_postgres(database: PostgresDatabase) -> Dump:
    """Over a connection of its pool, which knows the tables already: a new one would take several times as long.

    Most tables are empty, and which are is asked for all of them at once.
    """
    async with database._connection() as connection:
        tables = await connection.fetch(
            "SELECT schemaname || '.' || tablename FROM pg_tables WHERE schemaname IN ('postroom', 'switchboard')"
        )
        found: Dump = {name: [] for (name,) in tables}
        filled = " UNION ALL ".join(f"SELECT '{name}' WHERE EXISTS (SELECT FROM {name})" for name in found)
        for (name,) in await connection.fetch(filled):
            found[name] = _sorted(await connection.fetch(f"SELECT * FROM {name}"))
        return found


def _sorted(rows: list[Any]) -> list[str]:
    return sorted(repr(tuple(row)) for row in rows)


@transaction
def _delete_all(tables: Sequence[str]) -> Script[None]:
    yield Text("; ".join(f"DELETE FROM {name}" for name in tables))


async def clear(database: Database) -> None:
    """Deletes every row of a small database but those that say which migrations were applied, and the audit log's.

    The words of messages go with the messages, and could not be told what to forget without them.
    """
    kept = ("schema_migrations", "audit", "message_documents", "message_words")
    tables = [name for name in await dump(database) if not name.split(".")[-1].startswith(kept)]
    # What the others refer to goes last.
    await database.run(_delete_all(sorted(tables, key=lambda name: name.endswith("backfill_jobs"))))
