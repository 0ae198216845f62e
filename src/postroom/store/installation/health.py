"""The durability settings a database reports, for `postroom doctor` and for the refusal to start unsafely."""

from datetime import datetime

from postroom.core.errors import TookTooLong, UnsafeDurability
from postroom.store.engine.codecs import as_time
from postroom.store.engine.database import Database, Script, query, sql, transaction

_SYNCHRONOUS = {0: "off", 1: "normal", 2: "full", 3: "extra"}

# While much is written, a snapshot does not last long, and a full check needs a long one.
NOT_CHECKED = "not checked"


async def facts(database: Database) -> dict[str, object]:
    """The settings that durability depends on, and the database's own clock."""
    if database.dialect == "postgres":
        return await database.run(_postgres_facts())
    return {**await database.run(_sqlite_facts()), "quick_check": await _try_quick_check(database)}


async def _try_quick_check(database: Database) -> str:
    try:
        return await database.run(_quick_check())
    except TookTooLong:
        return NOT_CHECKED


async def refuse_unsafe(database: Database, allow: bool) -> None:
    """Refuse a PostgreSQL that may lose acknowledged data, unless the user allowed it."""
    if database.dialect == "sqlite" or allow:
        return
    found = await facts(database)
    for setting in ("fsync", "synchronous_commit", "full_page_writes"):
        if found[setting] == "off":
            raise UnsafeDurability(
                f"PostgreSQL runs with {setting} = off and may lose acknowledged mail; turn it on, or set "
                "POSTROOM_ALLOW_UNSAFE_DURABILITY=true to accept that"
            )


@transaction
def _sqlite_facts() -> Script[dict[str, object]]:
    """Read the settings of the writing connection: those of a reader do not matter."""
    rows = yield sql("select_health")
    journal_mode, synchronous, version, now = rows[0]
    return {
        "journal_mode": journal_mode,
        "synchronous": _SYNCHRONOUS.get(synchronous, str(synchronous)),
        "sqlite_version": version,
        "now": as_time(now),
    }


@query
def _postgres_facts() -> Script[dict[str, object]]:
    rows = yield sql("select_health")
    fsync, synchronous_commit, full_page_writes, version, now = rows[0]
    return {
        "fsync": fsync,
        "synchronous_commit": synchronous_commit,
        "full_page_writes": full_page_writes,
        "server_version": version,
        "now": now,
    }


@transaction
def write_probe(now: datetime) -> Script[None]:
    """Write one row, to find out whether writing works."""
    yield sql("write_probe", now)


@query
def _quick_check() -> Script[str]:
    """Run on a reader: it takes long on a large file, and must not block the writer."""
    rows = yield sql("quick_check")
    return "; ".join(row[0] for row in rows)
