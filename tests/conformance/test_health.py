"""What a database reports about its own durability."""

from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from postroom.core.errors import UnsafeDurability
from postroom.store.engine.postgres import PostgresDatabase
from postroom.store.installation.health import facts, refuse_unsafe
from support.postgres import PostgresServer
from support.store.job_setup import JobSetup


async def test_sqlite_writes_ahead_and_waits_for_the_disk(sqlite_setup: JobSetup) -> None:
    found = await facts(sqlite_setup.database)
    assert (found["journal_mode"], found["synchronous"], found["quick_check"]) == ("wal", "full", "ok")


async def test_postgres_says_what_durability_rests_on(postgres_setup: JobSetup) -> None:
    found = await facts(postgres_setup.database)
    assert [found[name] for name in ("fsync", "synchronous_commit", "full_page_writes")] == ["on", "on", "on"]
    assert isinstance(found["server_version"], int)
    assert found["server_version"] >= 180000


async def test_both_tell_their_time(setup: JobSetup) -> None:
    now = (await facts(setup.database))["now"]
    assert isinstance(now, datetime)
    assert abs(now - datetime.now(UTC)) < timedelta(minutes=1)


async def test_a_safe_database_is_not_refused(setup: JobSetup) -> None:
    await refuse_unsafe(setup.database, allow=False)


async def test_a_server_that_may_lose_what_it_acknowledged_is_refused_unless_the_user_says_so(
    postgres_url: str,
) -> None:
    connection = await asyncpg.connect(postgres_url)
    name = postgres_url.rpartition("/")[2]
    await connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    await connection.close()
    database = PostgresDatabase(postgres_url)
    with pytest.raises(UnsafeDurability, match=r"synchronous_commit = off .*POSTROOM_ALLOW_UNSAFE_DURABILITY"):
        await refuse_unsafe(database, allow=False)
    await refuse_unsafe(database, allow=True)
    await database.close()


@pytest.mark.parametrize(("configured", "ours"), [("off", "on"), ("on", "on"), ("remote_apply", "remote_apply")])
async def test_every_session_settles_by_itself_that_a_commit_waits_for_the_disk(
    postgres: PostgresServer, postgres_url: str, configured: str, ours: str
) -> None:
    """Also one that is opened, or goes on, after the server's own setting was changed."""
    name = postgres_url.rpartition("/")[2]
    database, allowed = PostgresDatabase(postgres_url), PostgresDatabase(postgres_url, allow_unsafe=True)
    try:
        async with database._connection() as early:
            postgres.sql(f"ALTER DATABASE {name} SET synchronous_commit = {configured}")
            async with database._connection() as late, allowed._connection() as unsafe:
                assert await early.fetchval("SHOW synchronous_commit") == "on"
                assert await late.fetchval("SHOW synchronous_commit") == ours
                assert (
                    await late.fetchval("SELECT source FROM pg_settings WHERE name = 'synchronous_commit'") == "session"
                )
                assert await unsafe.fetchval("SHOW synchronous_commit") == configured
    finally:
        await database.close()
        await allowed.close()
