"""Fixtures that every suite shares: the two real databases, and a clock that is moved by hand."""

import asyncio
import gc
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings

from postroom.store.engine.database import Database
from postroom.store.engine.opening import FILE, open_database
from support.clocks import ManualClock
from support.closed_home import close_home
from support.cyrus import running_cyrus
from support.dovecot import running_dovecot
from support.imap_server import ImapServer
from support.postgres import Emptier, PostgresServer
from support.scale import SOAK
from support.shell import Shell
from support.sqlite import new_sqlite

HOME = close_home()

# Who is started in the background by a shell ignores Ctrl-C, and so would every program that a test starts and stops.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "test", max_examples=40, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "soak", max_examples=2000, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("soak" if SOAK else "test")


def pytest_collection_finish() -> None:
    """What every test needs stays to the end: the collector of garbage need not look through it again and again."""
    gc.collect()
    gc.freeze()


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
def emptier(lasting_postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emptier]:
    """Of the lasting database, which is up to date."""

    async def migrate() -> None:
        await (await open_database(tmp_path_factory.mktemp("lasting"), lasting_postgres_url)).close()

    asyncio.run(migrate())
    emptier = Emptier(lasting_postgres_url)
    yield emptier
    emptier.close()


@pytest.fixture(scope="session")
def lasting_schema(emptier: Emptier) -> str:
    """What is in the lasting database when it is up to date."""
    return emptier.schema()


@pytest.fixture
def emptied_postgres_url(lasting_postgres_url: str, emptier: Emptier, lasting_schema: str) -> Iterator[str]:
    """The lasting database, emptied after the test, which may change all but its schema."""
    yield lasting_postgres_url
    left = emptier.empty()
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


@pytest.fixture
async def database(emptied_database_url: str | None, migrated_sqlite: Path, tmp_path: Path) -> AsyncIterator[Database]:
    """Each test that asks for this runs twice: on SQLite and on PostgreSQL."""
    if emptied_database_url is None:
        opened = await new_sqlite(tmp_path, migrated_sqlite)
    else:
        opened = await open_database(tmp_path, emptied_database_url)
    yield opened
    await opened.close()


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """In a folder of its own, with no setting from outside but that folder."""
    for name in [name for name in os.environ if name.startswith("POSTROOM_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("POSTROOM_DATA_DIR", str(tmp_path / "postroom-data"))
    monkeypatch.chdir(tmp_path)
    # The logs have their own tests; here they must not stay on for the tests that follow.
    monkeypatch.setattr("postroom.telemetry.logs.configure_logging", lambda *_args, **_more: None)  # type: ignore[reportUnknownLambdaType]
    return Shell(tmp_path, capsys)


@pytest.fixture(scope="session")
def dovecot() -> Iterator[ImapServer]:
    with running_dovecot() as server:
        yield server


@pytest.fixture(scope="session")
def cyrus() -> Iterator[ImapServer]:
    with running_cyrus() as server:
        yield server


@pytest.fixture(params=["dovecot", "cyrus"])
def imap_server(request: pytest.FixtureRequest) -> ImapServer:
    """Each test that asks for this runs twice: on Dovecot and on Cyrus."""
    return request.getfixturevalue(request.param)
