"""Fixtures of the conformance suite: the desk, and a second pair of hands on the same database."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from conformance.desk import Desk
from conftest import ManualClock, new_sqlite
from postroom.store.engine.database import Database
from postroom.store.engine.opening import connect_database, open_database


@pytest.fixture
def desk(database: Database, clock: ManualClock) -> Desk:
    return Desk(database, clock)


@pytest.fixture
async def second_database(
    database: Database, emptied_database_url: str | None, tmp_path: Path
) -> AsyncIterator[Database]:
    """The same database, opened once more, as another process would."""
    opened = connect_database(tmp_path, emptied_database_url)
    yield opened
    await opened.close()


@pytest.fixture
async def postgres_desk(emptied_postgres_url: str, tmp_path: Path, clock: ManualClock) -> AsyncIterator[Desk]:
    """For what only PostgreSQL has."""
    opened = await open_database(tmp_path, emptied_postgres_url)
    yield Desk(opened, clock)
    await opened.close()


@pytest.fixture
async def sqlite_desk(migrated_sqlite: Path, tmp_path: Path, clock: ManualClock) -> AsyncIterator[Desk]:
    """For what only SQLite has."""
    opened = await new_sqlite(tmp_path, migrated_sqlite)
    yield Desk(opened, clock)
    await opened.close()
