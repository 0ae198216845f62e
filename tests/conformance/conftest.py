"""Fixtures of the conformance suite: the setup, and a second connection to the same database."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from postroom.store.engine.database import Database
from postroom.store.engine.opening import connect_database, open_database
from support.clocks import ManualClock
from support.sqlite import new_sqlite
from support.store.job_setup import JobSetup


@pytest.fixture
def setup(database: Database, clock: ManualClock) -> JobSetup:
    return JobSetup(database, clock)


@pytest.fixture
async def second_database(
    database: Database, emptied_database_url: str | None, tmp_path: Path
) -> AsyncIterator[Database]:
    """The same database, opened once more, as another process would."""
    opened = connect_database(tmp_path, emptied_database_url)
    yield opened
    await opened.close()


@pytest.fixture
async def postgres_setup(emptied_postgres_url: str, tmp_path: Path, clock: ManualClock) -> AsyncIterator[JobSetup]:
    """For what only PostgreSQL has."""
    opened = await open_database(tmp_path, emptied_postgres_url)
    yield JobSetup(opened, clock)
    await opened.close()


@pytest.fixture
async def sqlite_setup(migrated_sqlite: Path, tmp_path: Path, clock: ManualClock) -> AsyncIterator[JobSetup]:
    """For what only SQLite has."""
    opened = await new_sqlite(tmp_path, migrated_sqlite)
    yield JobSetup(opened, clock)
    await opened.close()
