"""Copies the rows of a PostgreSQL database into files and back, from one snapshot, without external programs.

The text format of `COPY` is the same in all server versions. The schema is created by migrations: a backup lists those
that were applied, and they are applied again before the rows are copied in.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg

from postroom.backup.archive import Progress, silent
from postroom.core.errors import BackupError, DatabaseInUse, DatabaseUnavailable
from postroom.system.restore_lock import RESTORE_LOCK

SCHEMAS = ("postroom", "switchboard")
# Applying the migrations records them again; receipts belong to connections that have ended.
NOT_COPIED = frozenset({"postroom.schema_migrations", "postroom.receipts"})

_COLUMNS = """
    SELECT n.nspname, c.relname, array_agg(a.attname::text ORDER BY a.attnum)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relkind = 'r' AND n.nspname IN ('postroom', 'switchboard') AND a.attnum > 0 AND NOT a.attisdropped
        AND a.attgenerated = ''
    GROUP BY 1, 2 ORDER BY 1, 2"""
_REFERENCES = """
    SELECT n.nspname || '.' || c.relname, rn.nspname || '.' || rc.relname
    FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
        JOIN pg_class rc ON rc.oid = k.confrelid JOIN pg_namespace rn ON rn.oid = rc.relnamespace
    WHERE k.contype = 'f' AND n.nspname IN ('postroom', 'switchboard')"""
_SEQUENCES = """
    SELECT schemaname || '.' || sequencename, last_value FROM pg_sequences
    WHERE schemaname IN ('postroom', 'switchboard') AND last_value IS NOT NULL"""
_SIZE = """
    SELECT coalesce(sum(pg_table_size(c.oid)), 0)::bigint FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'r' AND n.nspname IN ('postroom', 'switchboard')"""
_OTHERS = f"""
    SELECT count(DISTINCT pid) FROM pg_locks
    WHERE locktype = 'advisory' AND granted AND pid <> pg_backend_pid()
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND classid::bigint << 32 | objid::bigint = {RESTORE_LOCK}"""  # noqa: S608 - a number from above
# Wait for connections that are just being closed.
_ALONE = f"SET lock_timeout = '2s'; SELECT pg_advisory_lock({RESTORE_LOCK}); RESET lock_timeout"
_SHARE = f"SELECT pg_try_advisory_lock_shared({RESTORE_LOCK})"


class Table(NamedTuple):
    schema: str
    name: str
    columns: tuple[str, ...]

    @property
    def full_name(self) -> str:
        return f"{self.schema}.{self.name}"


class Copied(NamedTuple):
    """The contents of a copy: the time of the snapshot, row counts, values of sequences, and migrations."""

    at: datetime
    rows: dict[str, int]
    sequences: dict[str, int]
    migrations: dict[int, str]


@asynccontextmanager
async def connected(url: str, *, alone: bool = False) -> AsyncGenerator[asyncpg.Connection]:
    """Connect without the usual timeouts, since a copy may take long.

    With `alone`, no other process of Postroom can use the database meanwhile. Raises DatabaseInUse if one does.
    """
    settings = {"application_name": "postroom-backup", "search_path": "postroom,switchboard", "timezone": "UTC"}
    try:
        connection = await asyncpg.connect(url, server_settings=settings, timeout=10)
    except (OSError, asyncpg.PostgresError) as error:
        raise DatabaseUnavailable(
            f"PostgreSQL could not be reached ({type(error).__name__}); check POSTROOM_DATABASE_URL"
        ) from error
    try:
        await (_lock_exclusively(connection) if alone else _share(connection))
        yield connection
    finally:
        await connection.close()


async def _lock_exclusively(connection: asyncpg.Connection) -> None:
    try:
        await connection.execute(_ALONE)
    except asyncpg.LockNotAvailableError:
        raise DatabaseInUse("connections of Postroom are on this database; stop every process first") from None


async def _share(connection: asyncpg.Connection) -> None:
    if not await connection.fetchval(_SHARE):
        raise DatabaseInUse("this database is being restored; try again when that has ended")


async def count_others(connection: asyncpg.Connection) -> int:
    """How many other connections of Postroom this database has."""
    return await connection.fetchval(_OTHERS)


async def size_of(connection: asyncpg.Connection) -> int:
    """The size of all tables in bytes, without indexes."""
    return await connection.fetchval(_SIZE)


async def copy_out(connection: asyncpg.Connection, folder: Path, progress: Progress = silent) -> Copied:
    """Copy every table into a file in the folder, from one snapshot. Writers are not blocked."""
    await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    at = await connection.fetchval("SELECT clock_timestamp()")
    tables = await tables_of(connection)
    if not tables:
        raise BackupError("there is nothing to back up: the database has no tables of Postroom; run `postroom migrate`")
    migrations = await connection.fetch("SELECT version, checksum FROM postroom.schema_migrations")
    rows: dict[str, int] = {}
    for done, table in enumerate(tables, 1):
        columns = ", ".join(f'"{each}"' for each in table.columns)
        target = folder / table.full_name
        status = await connection.copy_from_query(
            f"SELECT {columns} FROM {table.full_name}",  # noqa: S608 - names from the catalogue
            output=str(target),
        )
        rows[table.full_name] = int(status.split()[-1])
        progress("tables", done, len(tables))
    # Sequences are not transactional. Read after the rows, they are never behind them.
    sequences = _pairs(await connection.fetch(_SEQUENCES))
    await connection.execute("COMMIT")
    return Copied(at, rows, sequences, _pairs(migrations))


def _pairs(rows: Sequence[Sequence[Any]]) -> dict[Any, Any]:
    return {row[0]: row[1] for row in rows}


async def tables_of(connection: asyncpg.Connection) -> list[Table]:
    """The tables to copy, each after those that it references."""
    found = {
        f"{schema}.{name}": Table(schema, name, tuple(columns))
        for schema, name, columns in await connection.fetch(_COLUMNS)
    }
    needs: dict[str, set[str]] = {name: set() for name in found}
    for table, other in await connection.fetch(_REFERENCES):
        if table != other:
            needs[table].add(other)
    ordered: list[Table] = []
    while needs:
        free = sorted(name for name, others in needs.items() if not others & needs.keys())
        if not free:
            raise BackupError("the tables have circular references; report this bug")
        ordered += [found[name] for name in free if name not in NOT_COPIED]
        for name in free:
            del needs[name]
    return ordered


async def is_empty(connection: asyncpg.Connection) -> bool:
    """Whether the database has no tables of ours, or only tables without mail, accounts, rules and jobs."""
    if await connection.fetchval("SELECT to_regclass('postroom.schema_migrations') IS NULL"):
        return True
    for table in ("accounts", "job_bodies", "envelopes", "rules", "audit", "tokens", "contacts"):
        if await connection.fetchval(f"SELECT to_regclass('{table}') IS NOT NULL") and await connection.fetchval(
            f"SELECT EXISTS (SELECT 1 FROM {table})"  # noqa: S608 - names from above
        ):
            return False
    return True


async def set_aside(connection: asyncpg.Connection, suffix: str) -> list[str]:
    """Rename the existing schemas, which keep their rows."""
    moved: list[str] = []
    for schema in SCHEMAS:
        if await connection.fetchval("SELECT to_regnamespace($1) IS NOT NULL", schema):
            await connection.execute(f"ALTER SCHEMA {schema} RENAME TO {schema}_{suffix}")
            moved.append(f"{schema}_{suffix}")
    return moved


async def put_back(connection: asyncpg.Connection, set_aside: Sequence[str], suffix: str) -> None:
    """Undo `set_aside`: drop the new schemas and rename the old ones back."""
    await connection.execute("ROLLBACK")
    await connection.execute("BEGIN")
    for schema in SCHEMAS:
        await connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        if f"{schema}_{suffix}" in set_aside:
            await connection.execute(f"ALTER SCHEMA {schema}_{suffix} RENAME TO {schema}")
    await connection.execute("COMMIT")


async def copy_in(
    connection: asyncpg.Connection,
    folder: Path,
    rows: dict[str, int],
    sequences: dict[str, int],
    progress: Progress = silent,
) -> None:
    """Insert all rows in one transaction, and check their number: all or nothing."""
    await connection.execute("BEGIN")
    tables = await tables_of(connection)
    if unknown := sorted(set(rows) - {table.full_name for table in tables}):
        raise BackupError(
            f"the backup has tables that the schema does not: {', '.join(unknown)}; use the Postroom that made it"
        )
    for table in reversed(tables):
        if await connection.fetchval(f"SELECT EXISTS (SELECT 1 FROM {table.full_name})"):  # noqa: S608
            await connection.execute(f"DELETE FROM {table.full_name}")  # noqa: S608 - what migrations put there
    for done, table in enumerate(tables, 1):
        if table.full_name not in rows:
            continue
        status = await connection.copy_to_table(
            table.name, schema_name=table.schema, columns=list(table.columns), source=str(folder / table.full_name)
        )
        if (copied := int(status.split()[-1])) != rows[table.full_name]:
            raise BackupError(
                f"{table.full_name} has {copied} rows instead of {rows[table.full_name]}; use another backup"
            )
        progress("tables", done, len(tables))
    for name, value in sequences.items():
        await connection.fetchval("SELECT setval($1::text::regclass, $2)", name, value)
    await connection.execute("COMMIT")
