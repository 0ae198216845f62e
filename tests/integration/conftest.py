"""Fixtures of the integration suite: a Redis, a SQLite database, and the desk of the Redis connector between them."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from conftest import new_sqlite
from integration.redis_desk import Desk, opened_desk
from postroom.store.engine.database import Database
from support.redis import RedisServer, running_redis


@pytest.fixture
def redis_server() -> Iterator[RedisServer]:
    with running_redis() as server:
        yield server


@pytest.fixture
async def sqlite(migrated_sqlite: Path, tmp_path: Path) -> AsyncIterator[Database]:
    opened = await new_sqlite(tmp_path / "switchboard", migrated_sqlite)
    yield opened
    await opened.close()


@pytest.fixture
async def desk(redis_server: RedisServer, sqlite: Database) -> AsyncIterator[Desk]:
    async with opened_desk(redis_server, sqlite) as opened:
        yield opened
