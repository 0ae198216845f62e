"""Fixtures that every suite shares: the two real databases, and a clock that is moved by hand."""

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings

from postroom.store.engine.ballast import SIZE
from postroom.store.engine.database import Database
from postroom.store.engine.opening import FILE, open_database
from postroom.system.private_files import open_private
from support.postgres import PostgresServer, empty, schema

# Who is started in the background by a shell ignores Ctrl-C, and so would every program that a test starts and stops.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

SOAK = os.environ.get("POSTROOM_TEST_SCALE") == "soak"

settings.register_profile(
    "test", max_examples=40, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "soak", max_examples=2000, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("soak" if SOAK else "test")


def scale(test: int, soak: int) -> int:
    """A count for `make test`, and the big one for `make soak`."""
    return soak if SOAK else test


class ManualClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 15, 8, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def forward(self, seconds: float) -> datetime:
        self.now += timedelta(seconds=seconds)
        return self.now


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with tempfile.TemporaryDirectory(prefix="postroom-pg-", ignore_cleanup_errors=True) as folder:
        server = PostgresServer(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> Iterator[str]:
    """A database of the test's own."""
    name = f"test_{uuid4().hex[:12]}"
    postgres.sql(f"CREATE DATABASE {name}")
    yield postgres.url(name)
    postgres.sql(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def lasting_postgres_url(postgres: PostgresServer) -> Iterator[str]:
    """One database for many tests: making one takes longer than most of them."""
    name = f"lasting_{uuid4().hex[:12]}"
    postgres.sql(f"CREATE DATABASE {name}")
    yield postgres.url(name)
    postgres.sql(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def lasting_schema(lasting_postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is in the lasting database when it is up to date."""

    async def migrated() -> str:
        await (await open_database(tmp_path_factory.mktemp("lasting"), lasting_postgres_url)).close()
        return await schema(lasting_postgres_url)

    return asyncio.run(migrated())


@pytest.fixture
async def emptied_postgres_url(lasting_postgres_url: str, lasting_schema: str) -> AsyncIterator[str]:
    """The lasting database, emptied after the test, which may change all but its schema."""
    yield lasting_postgres_url
    left = await empty(lasting_postgres_url)
    assert left == lasting_schema, "a test has changed the schema for all that follow; it must ask for `database_url`"


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> str | None:
    """Where a new database is: None for SQLite in the test's folder."""
    return request.getfixturevalue("postgres_url") if request.param == "postgres" else None


@pytest.fixture(params=["sqlite", "postgres"])
def emptied_database_url(request: pytest.FixtureRequest) -> str | None:
    """The same, but that PostgreSQL's may be up to date already."""
    return request.getfixturevalue("emptied_postgres_url") if request.param == "postgres" else None


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a SQLite database that is new and up to date, to be copied: each migration waits for the disk."""
    folder = tmp_path_factory.mktemp("migrated")

    async def migrate() -> None:
        await (await open_database(folder)).close()

    asyncio.run(migrate())
    return folder / FILE


async def new_sqlite(folder: Path, migrated: Path) -> Database:
    """A SQLite database in the folder, without the wait for its migrations and its ballast."""
    copy_sqlite(migrated, folder)
    return await open_database(folder)


def copy_sqlite(migrated: Path, folder: Path) -> None:
    """The ballast is of the right size, but a hole: to write it out takes longer than most tests."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.copy(migrated, folder / FILE)
    with os.fdopen(open_private(folder / "ballast", os.O_WRONLY | os.O_CREAT), "wb") as ballast:
        ballast.truncate(SIZE)


@pytest.fixture
async def database(emptied_database_url: str | None, migrated_sqlite: Path, tmp_path: Path) -> AsyncIterator[Database]:
    """Each test that asks for this runs twice: on SQLite and on PostgreSQL."""
    if emptied_database_url is None:
        opened = await new_sqlite(tmp_path, migrated_sqlite)
    else:
        opened = await open_database(tmp_path, emptied_database_url)
    yield opened
    await opened.close()
