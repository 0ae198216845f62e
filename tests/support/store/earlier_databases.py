"""Databases as the 58 migrations left them that the schema has replaced (`store/engine/earlier_migrations.py`).

The schema is the same; the table of migrations, a name and an unused function differ.
"""

from pathlib import Path

from postroom.store.engine.database import Database, Dialect, Script, Text, transaction
from postroom.store.engine.migrate import Migration, apply, migrations

_LEFT_BEHIND = """
    ALTER TABLE inbox_keys RENAME CONSTRAINT inbox_keys_pkey TO inbox_keys_pkey1;
    CREATE FUNCTION words_of_message(sender text, subject text, content text) RETURNS tsvector
    LANGUAGE sql RETURN words_of(sender)"""


def schema_alone(dialect: Dialect) -> tuple[Migration, ...]:
    """The schema without the migrations after it, which may change rows."""
    return migrations(dialect)[:1]


async def migrate_as_before(database: Database, last: int = 58) -> None:
    """Give a new database the schema, and the table of migrations that it would have had, up to the last one.

    Migrations since then are not applied.
    """
    schema = schema_alone(database.dialect)
    await database.run(apply(schema[0], database.dialect, schema))
    await database.run(_as_before(database.dialect == "postgres", last))


@transaction
def _as_before(is_postgres: bool, last: int) -> Script[None]:
    if is_postgres:
        yield Text(_LEFT_BEHIND)
    lines = Path(__file__).with_suffix("").with_name("earlier_migrations.txt").read_text("ascii").splitlines()
    rows = [line.split() for line in lines[1 : last + 1]]
    values = ", ".join(
        f"({int(number)}, '{name}', '{postgres if is_postgres else sqlite}', '2026-11-15T08:00:00Z')"
        for number, name, sqlite, postgres in rows
    )
    yield Text("DELETE FROM schema_migrations")
    yield Text(f"INSERT INTO schema_migrations (version, name, checksum, applied_at) VALUES {values}")
