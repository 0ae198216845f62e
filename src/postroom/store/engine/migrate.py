"""Migrations: numbered, each applied once, all that are pending in one transaction. The first is the whole schema.

Safe to interrupt (what did not commit did not happen) and to run from two processes at once (the second waits for
the first and then finds nothing left to do). A migration that was changed after it was applied, or a database that a
newer Postroom has written, is refused.
"""

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from postroom.core.errors import DatabaseNewer, SchemaMismatch
from postroom.store.engine import earlier_migrations
from postroom.store.engine.database import Database, Dialect, Script, Text, query, schema_change, sql
from postroom.store.engine.schema_text import schema_text

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
_CREATE = {
    "sqlite": "choose another folder: `postroom migrate --data-dir FOLDER`",
    "postgres": "name an empty database in POSTROOM_DATABASE_URL and run `postroom migrate`",
}


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered file, or a numbered folder whose files are one migration, in the order of their names."""

    version: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


@cache
def migrations(dialect: Dialect) -> tuple[Migration, ...]:
    return tuple(
        Migration(int(each.name[:4]), each.name.removesuffix(".sql")[5:], _text(each, dialect))
        for each in _files_in_order(files("postroom.store") / "migrations")
    )


def _text(entry: Traversable, dialect: Dialect) -> str:
    if entry.is_dir():
        return "\n".join(_text(each, dialect) for each in _files_in_order(entry))
    return schema_text(entry.read_text("utf-8"), dialect)


def _files_in_order(folder: Traversable) -> list[Traversable]:
    return sorted(folder.iterdir(), key=lambda each: each.name)


async def migrate(database: Database) -> list[str]:
    """Bring the schema up to date, or leave it as it is; return the names of the applied migrations."""
    if not await pending(database):  # the usual case: one look is enough, and nothing is locked
        return []
    return await database.run(apply_all(database.dialect, migrations(database.dialect)))


async def pending(database: Database) -> list[str]:
    """The migrations that `migrate` would apply; changes nothing."""
    known = migrations(database.dialect)
    applied = await database.run(applied_migrations())
    if _can_be_taken_over(applied, database.dialect):
        return [each.name for each in known]
    _check(applied, known)
    return [each.name for each in known if each.version not in applied]


Applied = dict[int, tuple[str, str]]


@schema_change
def apply(migration: Migration, dialect: Dialect, known: tuple[Migration, ...]) -> Script[bool]:
    """Apply one migration unless it was applied before; return whether it was."""
    yield Text(_TABLE[dialect])
    applied = yield from _applied_migrations()
    if _can_be_taken_over(applied, dialect):
        migration = known[0]
        yield Text(earlier_migrations.TAKE_OVER[dialect])
    else:
        _check(applied, known)
        if migration.version in applied:
            return False
        yield Text(migration.text)
    yield sql("insert_migration", migration.version, migration.name, migration.checksum)
    return True


@schema_change
def apply_all(dialect: Dialect, known: tuple[Migration, ...]) -> Script[list[str]]:
    """Apply all migrations that were not applied before, or none; return their names."""
    done: list[str] = []
    for each in known:
        if (yield from apply.script(each, dialect, known)):
            done.append(each.name)
    return done


@query
def applied_migrations() -> Script[Applied]:
    exists = yield sql("select_migration_table")
    return (yield from _applied_migrations()) if exists[0][0] else {}


def _applied_migrations() -> Script[Applied]:
    rows = yield sql("select_migrations")
    return {version: (name, checksum) for version, name, checksum in rows}


def _can_be_taken_over(applied: Applied, dialect: Dialect) -> bool:
    """Whether the database has today's schema by the migrations from before. Raises if it has some of them only."""
    checksums = {version: checksum for version, (_, checksum) in applied.items()}
    if not earlier_migrations.are_earlier(checksums, dialect):
        return False
    if earlier_migrations.are_complete(checksums, dialect):
        return True
    last = max(applied)
    raise SchemaMismatch(
        f"the database is from an earlier Postroom (its last migration is {last:04} {applied[last][0]}). To keep its "
        f"data, update it with the last Postroom that can: `{earlier_migrations.COMMAND}`. To create a new one, "
        f"{_CREATE[dialect]}"
    )


def _check(applied: Applied, known: tuple[Migration, ...]) -> None:
    ours = {each.version: each for each in known}
    for version, (name, checksum) in applied.items():
        if version not in ours:
            raise DatabaseNewer(
                f"the database is from a newer Postroom (it has migration {version:04} {name}); "
                "upgrade Postroom, or use another database"
            )
        if ours[version].checksum != checksum:
            raise SchemaMismatch(
                f"migration {version:04} {name} was changed after it was applied here; "
                "install an unaltered Postroom of the version that wrote this database"
            )
