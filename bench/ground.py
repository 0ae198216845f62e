"""The ground every subject is measured on: one real PostgreSQL with full durability, and SQLite files beside it.

Each measurement gets an empty database of its own, dropped afterwards. The server and the folder belong to this run
and go with it, however it ends.
"""

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Generator
from pathlib import Path

import asyncpg

from support.postgres import PostgresServer

from .order import Database, Target

# Durability is as PostgreSQL ships it, named here so that nobody has to wonder; memory and WAL are sized so that no
# checkpoint lands in the middle of one subject and not of another. Autovacuum stays on, with its defaults.
SETTINGS = (
    "fsync=on",
    "synchronous_commit=on",
    "full_page_writes=on",
    "shared_buffers=512MB",
    "max_wal_size=8GB",
    "checkpoint_timeout=30min",
)


class Ground:
    """Makes databases, settles them before the clock starts, and holds back vacuum when asked."""

    def __init__(self, folder: Path, server: PostgresServer) -> None:
        self._folder = folder
        self._server = server
        self._made = 0

    @contextlib.contextmanager
    def database(self, kind: Database) -> Generator[Target]:
        self._made += 1
        name = f"bench_{self._made}"
        if kind == "sqlite":
            folder = self._folder / name
            folder.mkdir()
            try:
                yield Target("sqlite", str(folder / "bench.db"))
            finally:
                shutil.rmtree(folder)
            return
        self._server.sql(f"CREATE DATABASE {name}")
        try:
            yield Target("postgres", self._server.url(name))
        finally:
            self._server.sql(f"DROP DATABASE {name} WITH (FORCE)")

    @contextlib.contextmanager
    def kept(self, kind: Database, name: str, fill: Callable[[Target], None]) -> Generator[Target]:
        """A database that stays in the folder of this run, if that stays. `fill` makes it, or brings it up to date."""
        if kind == "sqlite":
            found, partial = self._folder / f"{name}.db", self._folder / f"{name}.partial.db"
            for suffix in ("", "-wal", "-shm"):
                partial.with_name(partial.name + suffix).unlink(missing_ok=True)
            place = Target("sqlite", str(found if found.exists() else partial))
            fill(place)
            if not found.exists():
                partial.rename(found)
            yield Target("sqlite", str(found))
            return
        known = self._server.sql(f"SELECT 1 FROM pg_database WHERE datname = '{name}'").strip()
        if not known:
            self._server.sql(f"DROP DATABASE IF EXISTS {name}_partial", f"CREATE DATABASE {name}_partial")
        fill(Target("postgres", self._server.url(name if known else f"{name}_partial")))
        if not known:
            self._server.sql(f"ALTER DATABASE {name}_partial RENAME TO {name}")
        yield Target("postgres", self._server.url(name))

    def settle(self, target: Target) -> None:
        """What a server in service has behind it after a fill: fresh statistics, hint bits, pages on disk."""
        if target.database == "postgres":
            self._server.sql("VACUUM ANALYZE", "CHECKPOINT", database=target.address.rpartition("/")[2])


@contextlib.contextmanager
def prepared(kept: Path | None = None) -> Generator[Ground]:
    """With a folder to keep, it stays, and with it the databases that are filled once for many measurements."""
    folder = Path(tempfile.mkdtemp(prefix="postroom-bench-")) if kept is None else kept.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    # The server runs as another user when we are root, and must be able to walk to its own folder.
    folder.chmod(0o711)
    server = PostgresServer(folder / "postgres", SETTINGS)
    try:
        server.start()
        yield Ground(folder, server)
    finally:
        server.stop()
        if kept is None:
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.asynccontextmanager
async def vacuum_held_back(target: Target) -> AsyncGenerator[None]:
    """A long transaction in the same database whose snapshot forbids vacuum to remove anything that dies after it."""
    connection = await asyncpg.connect(target.address)
    transaction = connection.transaction(isolation="repeatable_read", readonly=True)
    await transaction.start()
    try:
        await connection.fetchval("SELECT count(*) FROM pg_class")
        yield
        held = await connection.fetchval(
            "SELECT backend_xmin IS NOT NULL FROM pg_stat_activity WHERE pid = pg_backend_pid()"
        )
        if not held:
            raise RuntimeError("the snapshot was lost during the drain: the figure would show nothing")
    finally:
        await transaction.rollback()
        await connection.close()


def fsync_milliseconds(samples: int = 50) -> float:
    """The median cost of a small durable append where the databases lie: near zero means a disk that does not sync."""
    with tempfile.NamedTemporaryFile(prefix="postroom-bench-fsync-") as file:
        costs: list[float] = []
        for _ in range(samples):
            file.write(b"x" * 4096)
            file.flush()
            started = time.perf_counter()
            os.fsync(file.fileno())
            costs.append(time.perf_counter() - started)
    return sorted(costs)[samples // 2] * 1000
