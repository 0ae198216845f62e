"""Migrations: each applied once, all or nothing, and never onto a schema that is not ours."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from postroom.core.errors import SchemaMismatch, StoreError, TookTooLong
from postroom.store.engine import migrate as runner
from postroom.store.engine.database import Database, Dialect, Script, Text, transaction
from postroom.store.engine.ids import new_id
from postroom.store.engine.migrate import Migration, applied_migrations, apply, migrate, migrations, pending
from postroom.store.engine.opening import connect_database
from postroom.store.jobs import jobs as store
from support.faults import FailingAt, InjectedFault
from support.store.dump import dump
from support.store.earlier_databases import migrate_as_before, schema_alone

Open = Callable[[], Database]
MORE = Migration(9000, "more", "CREATE TABLE more_things (n integer); CREATE TABLE even_more (n integer)")
SECOND = Migration(2, "second", "CREATE TABLE seconds (n integer)")
THIRD = Migration(3, "third", "ALTER TABLE seconds ADD COLUMN m integer")
LONG = Migration(9000, "long", "SELECT pg_sleep(0.4)")
BROKEN = Migration(9000, "broken", "CREATE TABLE half_done (n integer); SELECT * FROM no_such_table")
# Another state, in a CHECK of a table that others refer to. SQLite cannot change one: the table is made anew.
ANEW: dict[str, str] = {
    "sqlite": """
        PRAGMA defer_foreign_keys = ON;
        CREATE TABLE old_accounts AS SELECT * FROM accounts;
        DROP TABLE accounts;
        CREATE TABLE accounts (
            id TEXT PRIMARY KEY, provider TEXT NOT NULL, endpoint_identity TEXT NOT NULL UNIQUE, email TEXT NOT NULL,
            state TEXT NOT NULL CHECK (state IN ('active', 'on_leave')), state_reason TEXT, created_at TEXT NOT NULL,
            updated_at TEXT NOT NULL, acts_from TEXT
        ) STRICT;
        INSERT INTO accounts SELECT * FROM old_accounts;
        DROP TABLE old_accounts""",
    "postgres": """
        ALTER TABLE accounts DROP CONSTRAINT accounts_state_check;
        ALTER TABLE accounts ADD CONSTRAINT accounts_state_check CHECK (state IN ('active', 'on_leave'))""",
}


@pytest.fixture
async def opening(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Open]:
    """Opens a database that nobody has migrated yet, as often as asked."""
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else None
    opened: list[Database] = []

    def open() -> Database:
        opened.append(connect_database(tmp_path, url))
        return opened[-1]

    yield open
    for database in opened:
        await database.close()


both = pytest.mark.parametrize("opening", ["sqlite", "postgres"], indirect=True)


@pytest.fixture
def three_migrations(monkeypatch: pytest.MonkeyPatch) -> None:
    """The schema, and two migrations after it."""

    def known(dialect: Dialect) -> tuple[Migration, ...]:
        return (migrations(dialect)[0], SECOND, THIRD)

    monkeypatch.setattr(runner, "migrations", known)


def _names(database: Database) -> list[str]:
    return [each.name for each in runner.migrations(database.dialect)]


async def _with(database: Database, migration: Migration) -> bool:
    known = (*migrations(database.dialect), migration)
    return await database.run(apply(migration, database.dialect, known))


@transaction
def laying(*texts: str) -> Script[None]:
    for text in texts:
        yield Text(text)


def mail_of(account: UUID, ids: dict[str, UUID], now: str) -> list[str]:
    """An account with messages."""
    thread = new_id()
    return [
        f"INSERT INTO accounts (id, provider, endpoint_identity, email, state, created_at, updated_at) "
        f"VALUES ('{account}', 'gmail', 'me', 'me@x.example', 'active', '{now}', '{now}')",
        f"INSERT INTO threads (id, account_id, provider_thread_id, subject, last_message_at, created_at, updated_at) "
        f"VALUES ('{thread}', '{account}', 't', '', '{now}', '{now}', '{now}')",
        *(
            "INSERT INTO messages (id, account_id, thread_id, inbox_id, provider_message_id, ingestion_tier, "
            "policy_tier, sender, subject, headers_json, labels_json, snippet, body_text, has_attachment, sent_at, "
            f"created_at, updated_at) VALUES ('{id}', '{account}', '{thread}', '{new_id()}', '{name}', 'full', "
            f"""'default', 'a@b.example', '', '[]', '["UNREAD"]', '', '', false, '{now}', '{now}', '{now}')"""
            for name, id in ids.items()
        ),
    ]


@both
@pytest.mark.usefixtures("three_migrations")
async def test_every_migration_is_applied_once(opening: Open) -> None:
    database = opening()
    assert await migrate(database) == _names(database)
    after = await dump(database)
    assert await migrate(database) == []
    assert await dump(database) == after
    applied = await database.run(applied_migrations())
    assert {version: name for version, (name, _) in applied.items()} == {
        each.version: each.name for each in runner.migrations(database.dialect)
    }


@both
@pytest.mark.usefixtures("three_migrations")
async def test_what_is_pending_is_reported_without_changing_anything(opening: Open) -> None:
    database = opening()
    before = await dump(database)
    assert await pending(database) == _names(database)
    assert await dump(database) == before
    await migrate(database)
    assert await pending(database) == []


@both
@pytest.mark.usefixtures("three_migrations")
async def test_a_migration_interrupted_anywhere_leaves_nothing(opening: Open) -> None:
    database = opening()
    known = runner.migrations(database.dialect)
    steps = 4  # the table of migrations, what it holds, the migration itself, and its entry
    for number, migration in enumerate(known):
        before = await dump(database)
        for n in range(1, steps + 2):
            with pytest.raises(InjectedFault):
                await FailingAt(database, n).run(apply(migration, database.dialect, known))
            assert await dump(database) == before
            assert await pending(database) == _names(database)[number:]
        assert await FailingAt(database, steps + 2).run(apply(migration, database.dialect, known))
    assert await migrate(database) == []


@both
@pytest.mark.usefixtures("three_migrations")
async def test_what_an_interruption_has_left_over_is_applied_afterwards(opening: Open) -> None:
    database = opening()
    known = runner.migrations(database.dialect)
    await database.run(apply(known[0], database.dialect, known))
    assert await migrate(database) == ["second", "third"]


@both
async def test_a_migration_that_breaks_half_way_leaves_nothing(opening: Open) -> None:
    database = opening()
    await migrate(database)
    before = await dump(database)
    with pytest.raises(StoreError):
        await _with(database, BROKEN)
    assert await dump(database) == before
    assert await pending(database) == []
    assert await database.run(store.count_jobs()) == {}


@both
@pytest.mark.usefixtures("three_migrations")
async def test_two_processes_that_migrate_at_once_apply_each_once(opening: Open) -> None:
    sides = [opening() for _ in range(3)]
    applied = await asyncio.gather(*(migrate(side) for side in sides))
    assert sorted(name for names in applied for name in names) == sorted(_names(sides[0]))


@both
async def test_a_migration_is_applied_on_top_of_the_earlier_ones(opening: Open) -> None:
    database = opening()
    await migrate(database)
    assert await _with(database, MORE)
    assert not await _with(database, MORE)
    assert {"more_things", "even_more"} <= {name.split(".")[-1] for name in await dump(database)}


@both
async def test_a_migration_that_was_changed_after_it_was_applied_is_refused(opening: Open) -> None:
    database = opening()
    await migrate(database)
    await _with(database, MORE)
    before = await dump(database)
    changed = Migration(MORE.version, MORE.name, MORE.text + "; SELECT 1")
    with pytest.raises(SchemaMismatch, match="9000 more was changed after it was applied"):
        await _with(database, changed)
    assert await dump(database) == before


@both
async def test_a_database_from_the_future_is_refused_by_all_that_open_it(opening: Open) -> None:
    database = opening()
    await migrate(database)
    await _with(database, MORE)
    before = await dump(database)
    for refused in (migrate, pending):
        with pytest.raises(SchemaMismatch, match=r"newer Postroom .*upgrade Postroom"):
            await refused(database)
    assert await dump(database) == before


@both
async def test_a_database_that_has_all_migrations_from_before_the_schema_is_taken_over(
    opening: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "migrations", schema_alone)
    database = opening()
    await migrate_as_before(database)
    await database.run(laying(*mail_of(new_id(), {"one": new_id()}, "2026-11-15T08:00:00.000000Z")))
    before = await dump(database)
    assert await pending(database) == _names(database)
    sides = [database, opening()]
    applied = await asyncio.gather(*(migrate(side) for side in sides))
    assert sorted(name for names in applied for name in names) == sorted(_names(database))
    assert await pending(database) == []
    after, table = await dump(database), next(name for name in before if name.endswith("schema_migrations"))
    assert {name: rows for name, rows in after.items() if name != table} == {
        name: rows for name, rows in before.items() if name != table
    }
    assert await _with(database, MORE)


@both
async def test_a_take_over_interrupted_anywhere_leaves_the_database_as_it_was(opening: Open) -> None:
    database = opening()
    await migrate_as_before(database)
    before = await dump(database)
    known = migrations(database.dialect)
    for n in range(1, 6):
        with pytest.raises(InjectedFault):
            await FailingAt(database, n).run(apply(known[0], database.dialect, known))
        assert await dump(database) == before
    assert await migrate(database) == _names(database)


@both
@pytest.mark.parametrize("last", [1, 57])
async def test_a_database_on_the_way_to_the_schema_is_told_how_to_get_there(opening: Open, last: int) -> None:
    database = opening()
    await migrate_as_before(database, last)
    before = await dump(database)
    for refused in (migrate, pending):
        with pytest.raises(SchemaMismatch, match=r"git checkout [0-9a-f]{8} .*postroom migrate`.*create a new one"):
            await refused(database)
    assert await dump(database) == before


@both
async def test_rows_and_references_are_kept_when_a_migration_makes_a_table_anew(opening: Open) -> None:
    database = opening()
    await migrate(database)
    account, message = new_id(), new_id()
    await database.run(laying(*mail_of(account, {"one": message}, "2026-11-15T08:00:00.000000Z")))
    before = await dump(database)
    assert await _with(database, Migration(9000, "anew", ANEW[database.dialect]))
    after = await dump(database)
    assert {name: rows for name, rows in after.items() if after[name] != before[name]}.keys() == {
        name for name in before if name.endswith("schema_migrations")
    }
    await database.run(laying("UPDATE accounts SET state = 'on_leave'"))
    with pytest.raises(StoreError):
        await database.run(laying("UPDATE accounts SET state = 'gone'"))
    with pytest.raises(StoreError):
        await database.run(laying("DELETE FROM accounts"))


# What a migration would meet, or leave behind, that writes rows of messages.
MARKED: dict[str, str] = {
    "sqlite": "CREATE TRIGGER untouched BEFORE UPDATE ON messages BEGIN SELECT RAISE(ABORT, 'written anew'); END",
    "postgres": "CREATE TABLE written_where AS "
    "SELECT pg_relation_filenode('messages') AS file, m.ctid AS place, m.id FROM messages m",
}
STILL_THERE = """
    SELECT 1 / (SELECT count(*) FROM written_where w JOIN messages m ON m.id = w.id AND m.ctid = w.place
        AND w.file = pg_relation_filenode('messages'))"""


@both
async def test_no_migration_writes_stored_mail_again_however_much_there_is(opening: Open) -> None:
    database = opening()
    known = migrations(database.dialect)
    await database.run(apply(known[0], database.dialect, known))
    await database.run(laying(*mail_of(new_id(), {"one": new_id()}, "2026-11-15T08:00:00.000000Z")))
    await database.run(laying(MARKED[database.dialect]))
    await migrate(database)
    if database.dialect == "postgres":
        await database.run(laying(STILL_THERE))


async def test_a_migration_takes_as_long_as_it_takes(postgres_url: str, tmp_path: Path) -> None:
    """Also where the server ends statements that take long."""
    hasty = connect_database(tmp_path, f"{postgres_url}?statement_timeout=300")
    try:
        first = migrations("postgres")[0]
        await hasty.run(apply(first, "postgres", (first,)))
        assert await hasty.run(apply(LONG, "postgres", (first, LONG)))
        with pytest.raises(TookTooLong):
            await hasty.run(laying(LONG.text))
    finally:
        await hasty.close()


@both
async def test_work_on_a_database_that_was_not_migrated_is_refused(opening: Open) -> None:
    database = opening()
    with pytest.raises(StoreError):
        await database.run(store.count_jobs())


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_both_databases_have_the_same_migrations(dialect: Any) -> None:
    ours = [(each.version, each.name) for each in migrations(dialect)]
    assert ours == [(each.version, each.name) for each in migrations("sqlite")]
    assert [version for version, _ in ours] == list(range(1, len(ours) + 1))
