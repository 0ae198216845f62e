"""Migrations: numbered files, each applied once, each in a transaction of its own.

Safe to interrupt (what did not commit did not happen) and to run from two processes at once (the second waits for
the first and then finds nothing left to do). A file that was changed after it was applied, or a database that a newer
Postroom has written, is refused.
"""

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from postroom.core.errors import SchemaMismatch
from postroom.store.engine.database import Database, Dialect, Script, Text, query, schema_change, sql

_TABLE = {
    "sqlite": """
        CREATE TABLE IF NOT EXISTS schema_migrations (
            version INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at TEXT NOT NULL
        ) STRICT""",
    "postgres": """
        SELECT pg_advisory_xact_lock(7305418627334);
        CREATE SCHEMA IF NOT EXISTS postroom;
        CREATE SCHEMA IF NOT EXISTS switchboard;
        CREATE TABLE IF NOT EXISTS postroom.schema_migrations (
            version integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at timestamptz NOT NULL
        )""",
}
# Run before a migration, in its transaction. A released migration is never changed; what it would lose is saved here.
# 0003 leaves out the keys of events with a long identity, which 0015 takes over.
_BEFORE = {
    3: """
        CREATE TABLE long_identities AS
        SELECT k.key, k.inbox_id, k.channel, k.provider, k.endpoint_identity, k.external_event_id, k.sender,
            COALESCE(i.ingestion_tier, 'full') AS ingestion_tier
        FROM inbox_keys k LEFT JOIN inbox i ON i.id = k.inbox_id
        WHERE length(k.channel || k.provider || k.endpoint_identity || k.external_event_id) > 509"""
}


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered file."""

    version: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


@cache
def migrations(dialect: Dialect) -> tuple[Migration, ...]:
    folder = files("postroom.store") / "migrations" / dialect
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return tuple(
        Migration(int(name[:4]), name.removesuffix(".sql")[5:], (folder / name).read_text("utf-8")) for name in names
    )


async def migrate(database: Database) -> list[str]:
    """Bring the schema up to date; return the names of the applied migrations."""
    known = migrations(database.dialect)
    waiting = await pending(database)  # mostly none: then one look is enough, and nothing is locked
    return [
        each.name for each in known if each.name in waiting and await database.run(apply(each, database.dialect, known))
    ]


async def pending(database: Database) -> list[str]:
    """The migrations that `migrate` would apply; changes nothing."""
    known = migrations(database.dialect)
    applied = await database.run(applied_migrations())
    _check(applied, known)
    return [each.name for each in known if each.version not in applied]


Applied = dict[int, tuple[str, str]]


@schema_change
def apply(migration: Migration, dialect: Dialect, known: tuple[Migration, ...]) -> Script[bool]:
    """Apply one migration unless it was applied before; return whether it was."""
    yield Text(_TABLE[dialect])
    applied = yield from _applied()
    _check(applied, known)
    if migration.version in applied:
        return False
    if before := _BEFORE.get(migration.version):
        yield Text(before)
    yield Text(migration.text)
    yield sql("insert_migration", migration.version, migration.name, migration.checksum)
    return True


@query
def applied_migrations() -> Script[Applied]:
    exists = yield sql("select_migration_table")
    return (yield from _applied()) if exists[0][0] else {}


def _applied() -> Script[Applied]:
    rows = yield sql("select_migrations")
    return {version: (name, checksum) for version, name, checksum in rows}


def _check(applied: Applied, known: tuple[Migration, ...]) -> None:
    ours = {each.version: each for each in known}
    for version, (name, checksum) in applied.items():
        if version not in ours:
            raise SchemaMismatch(
                f"the database is from a newer Postroom (it has migration {version:04} {name}); "
                "upgrade Postroom, or use another database"
            )
        if ours[version].checksum != checksum:
            raise SchemaMismatch(
                f"migration {version:04} {name} was changed after it was applied here; "
                "install an unaltered Postroom of the version that wrote this database"
            )
