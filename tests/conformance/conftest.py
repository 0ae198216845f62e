"""Fixtures of the conformance suite: the desk, and a second pair of hands on the same database.

The PostgreSQL database is made once and emptied after each test, since making one takes longer than most tests;
those that want a new one ask for `postgres_url`.
"""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from conformance.desk import Desk
from conformance.dump import empty_postgres
from conftest import ManualClock
from postroom.store.database import Database
from postroom.store.opening import connect_database, open_database
from support.postgres import PostgresServer


@pytest.fixture(scope="session")
def lasting_postgres_url(postgres: PostgresServer) -> Iterator[str]:
    name = f"conformance_{uuid4().hex[:12]}"
    postgres.sql(f"CREATE DATABASE {name}")
    yield postgres.url(name)
    postgres.sql(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@pytest.fixture
async def emptied_postgres_url(lasting_postgres_url: str, tmp_path: Path) -> AsyncIterator[str]:
    yield lasting_postgres_url
    connection = await asyncpg.connect(lasting_postgres_url)
    await empty_postgres(connection)
    await connection.close()


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> str | None:
    """Where the database is: None for SQLite in the test's folder."""
    return request.getfixturevalue("emptied_postgres_url") if request.param == "postgres" else None


@pytest.fixture
def desk(database: Database, clock: ManualClock) -> Desk:
    return Desk(database, clock)


@pytest.fixture
async def second_database(database: Database, database_url: str | None, tmp_path: Path) -> AsyncIterator[Database]:
    """The same database, opened once more, as another process would."""
    opened = connect_database(tmp_path, database_url)
    yield opened
    await opened.close()


@pytest.fixture
async def postgres_desk(emptied_postgres_url: str, tmp_path: Path, clock: ManualClock) -> AsyncIterator[Desk]:
    """For what only PostgreSQL has."""
    opened = await open_database(tmp_path, emptied_postgres_url)
    yield Desk(opened, clock)
    await opened.close()


@pytest.fixture
async def sqlite_desk(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Desk]:
    """For what only SQLite has."""
    opened = await open_database(tmp_path)
    yield Desk(opened, clock)
    await opened.close()
