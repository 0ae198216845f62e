"""Fixtures of the integration suite: a Redis, a SQLite database, and the setup of the Redis connector between them."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from postroom.store.engine.database import Database
from support.clocks import ManualClock
from support.installing import SUPPORTED, TOO_OLD, python_of
from support.redis import RedisServer, running_redis
from support.redis_setup import RedisSetup, opened_redis_setup
from support.scale import SOAK
from support.sqlite import new_sqlite
from support.webhook_receiver import Receiver, webhook_receiver

# Building the image takes minutes: only `make soak` does it.
collect_ignore = [] if SOAK else ["test_image.py"]


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
async def setup(redis_server: RedisServer, sqlite: Database) -> AsyncIterator[RedisSetup]:
    async with opened_redis_setup(redis_server, sqlite) as opened:
        yield opened


@pytest.fixture
async def receiver(sqlite: Database, clock: ManualClock) -> AsyncIterator[Receiver]:
    async with webhook_receiver(sqlite, clock) as opened:
        yield opened


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave what takes minutes to `make soak`, and visit pages on SQLite alone: the statements behind them are run on
    both databases by the conformance suite, and the pages themselves by `make soak`.
    """
    left_out = [] if SOAK else [each for each in items if each.get_closest_marker("soak") or _is_page_on_postgres(each)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [each for each in items if each not in set(left_out)]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name what this machine lacks, so that nobody takes it for tested."""
    missing = [each for each in (*SUPPORTED, TOO_OLD) if SOAK and python_of(each) is None]
    if missing:
        terminalreporter.write_line(f"Not tested, since this machine has none of them: Python {', '.join(missing)}")


def _is_page_on_postgres(item: pytest.Item) -> bool:
    return item.path.name.startswith("test_page_") and "postgres" in item.name.partition("[")[2]
