"""A switchboard behind real HTTP, on SQLite: who may do what does not depend on the database."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from conftest import ManualClock
from postroom.store.opening import open_database
from support.switchboard import Served, served, services_on


@pytest.fixture
async def switchboard(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Served]:
    database = await open_database(tmp_path, None)
    async with served(services_on(database, clock)) as running:
        yield running
    await database.close()
