"""`/readyz` and `/healthz`: whether the product can work now, and what prevents it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from starlette.routing import Route

from postroom.intake.disk import DiskReserve
from postroom.interfaces.http.ready import ready_endpoint
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import FILE, connect_database, open_database
from postroom.store.engine.sqlite import SqliteDatabase
from postroom.store.engine.write_ahead_log import LONG_BYTES
from postroom.store.jobs.jobs import open_lease
from postroom.store.jobs.leaders import NEGLECTED_AFTER
from postroom.system.wall_clock import wall_clock
from support.postgres import PostgresServer
from support.scripted_feed import ScriptedFeed, overview_application

MIB = 1024 * 1024


class Disk:
    """A disk whose free space a test decides."""

    def __init__(self, folder: Path, free_mib: int = 1000, reserve_mib: int = 512) -> None:
        self.free_mib = free_mib
        self.reserve = DiskReserve(folder, reserve_mib, lambda _folder: self.free_mib * MIB, check_every_s=0)


@asynccontextmanager
async def visiting(
    database: Database, reserve: DiskReserve | None, write_every_s: float = 1.0
) -> AsyncGenerator[httpx2.AsyncClient]:
    routes = [Route("/readyz", ready_endpoint(database, reserve, write_every_s))]
    app = overview_application(ScriptedFeed(), allowed_hosts=["postroom.test"], routes=routes)
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://postroom.test") as client:
        yield client


@asynccontextmanager
async def opened(folder: Path) -> AsyncGenerator[Database]:
    database = await open_database(folder, None)
    try:
        yield database
    finally:
        await database.close()


@asynccontextmanager
async def without_a_schema(folder: Path) -> AsyncGenerator[Database]:
    database = SqliteDatabase(folder / "postroom.sqlite3")
    try:
        yield database
    finally:
        await database.close()


@pytest.mark.parametrize("with_reserve", [True, False])
async def test_a_product_that_can_work_is_ready(tmp_path: Path, with_reserve: bool):
    reserve = Disk(tmp_path).reserve if with_reserve else None
    async with opened(tmp_path) as database, visiting(database, reserve) as client:
        answer = await client.get("/readyz")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    ready = {"database": "ok", "write": "ok", "room": "ok", "log": "ok", "work": "ok"}
    assert answer.json() == {"status": "ready", "checks": ready}
    assert answer.headers["cache-control"] == "no-store"


async def test_below_the_reserve_it_is_not_ready_and_is_again_when_there_is_room(tmp_path: Path):
    disk = Disk(tmp_path)
    async with opened(tmp_path) as database, visiting(database, disk.reserve) as client:
        for free_mib, status, room in (
            (511, 503, "below the reserve"),
            (512, 200, "ok"),
            (0, 503, "below the reserve"),
        ):
            disk.free_mib = free_mib
            answer = await client.get("/readyz")
            assert answer.status_code == status
            found = {"database": "ok", "write": "ok", "room": room, "log": "ok", "work": "ok"}
            assert answer.json()["checks"] == found
            assert answer.json()["status"] == ("ready" if status == 200 else "not ready")


async def test_the_size_of_the_log_is_reported_and_one_without_room_makes_it_not_ready(tmp_path: Path):
    """A log that is held needs as much free space as it is long, beside the reserve."""
    log, reserve_mib = tmp_path / f"{FILE}-wal", 7
    async with opened(tmp_path / "other") as database:
        room = 2 * LONG_BYTES + reserve_mib * 1024 * 1024
        reserve = DiskReserve(tmp_path, reserve_mib, lambda _folder: room, database=tmp_path / FILE)
        async with visiting(database, reserve) as client:
            for size, status in ((0, 200), (LONG_BYTES, 200), (2 * LONG_BYTES, 200), (2 * LONG_BYTES + 1, 503)):
                with log.open("wb") as file:
                    file.truncate(size)
                answer = await client.get("/readyz")
                assert (answer.status_code, answer.json()["log_bytes"]) == (status, size)
                assert (answer.json()["checks"]["log"] == "ok") == (status == 200)


async def test_a_database_that_does_not_answer_is_named_by_the_kind_of_its_error(tmp_path: Path):
    full = Disk(tmp_path, free_mib=0).reserve
    async with without_a_schema(tmp_path) as database, visiting(database, full) as client:
        answer = await client.get("/readyz")
    assert answer.status_code == 503
    mismatch = "SchemaMismatch"
    checks = {
        "database": mismatch,
        "write": mismatch,
        "room": "below the reserve",
        "log": "ok",
        "work": mismatch,
    }
    assert answer.json() == {"status": "not ready", "checks": checks}
    assert str(tmp_path) not in answer.text


async def test_due_work_that_nobody_sees_to_is_reported(tmp_path: Path):
    async with opened(tmp_path) as database, visiting(database, None) as client:
        long_ago = wall_clock() - 2 * NEGLECTED_AFTER
        await database.run(open_lease(new_id(), "a dead worker", long_ago, long_ago))
        answer = await client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["checks"]["work"] == "due work is not being done: there is no leader"


async def test_a_database_that_can_be_read_and_not_written_is_not_ready(tmp_path: Path):
    async with opened(tmp_path) as database, visiting(database, None, write_every_s=0) as client:
        assert isinstance(database, SqliteDatabase)
        for read_only, status, write in (("OFF", 200, "ok"), ("ON", 503, "DatabaseReadOnly"), ("OFF", 200, "ok")):
            database._connection.execute(f"PRAGMA query_only = {read_only}")
            answer = await client.get("/readyz")
            assert (answer.status_code, answer.json()["checks"]["write"]) == (status, write)
            assert answer.json()["checks"]["database"] == "ok"


async def test_a_postgresql_that_only_reads_is_not_ready(tmp_path: Path, postgres: PostgresServer, postgres_url: str):
    name = postgres_url.rpartition("/")[2].partition("?")[0]
    await (await open_database(tmp_path, postgres_url)).close()
    postgres.sql(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    database = connect_database(tmp_path, postgres_url)
    try:
        async with visiting(database, None) as client:
            answer = await client.get("/readyz")
        assert answer.status_code == 503
        assert (answer.json()["checks"]["database"], answer.json()["checks"]["write"]) == ("ok", "DatabaseReadOnly")
    finally:
        await database.close()


async def test_however_many_ask_little_is_written(tmp_path: Path):
    async with opened(tmp_path) as database:
        assert isinstance(database, SqliteDatabase)
        before = database._connection.execute("SELECT total_changes()").fetchall()[0][0]
        async with visiting(database, None, write_every_s=3600) as client:
            answers = await asyncio.gather(*(client.get("/readyz") for _ in range(20)))
        assert {answer.status_code for answer in answers} == {200}
        assert database._connection.execute("SELECT total_changes()").fetchall()[0][0] == before + 1


async def test_a_process_that_runs_is_healthy_whatever_it_lacks(tmp_path: Path):
    full = Disk(tmp_path, free_mib=0).reserve
    async with without_a_schema(tmp_path) as database, visiting(database, full) as client:
        answer = await client.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


@pytest.mark.parametrize("path", ["/readyz", "/healthz"])
async def test_they_answer_questions_under_our_own_names_only(tmp_path: Path, path: str):
    async with opened(tmp_path) as database, visiting(database, None) as client:
        assert (await client.get(path, headers={"Host": "evil.example"})).status_code == 421
        assert (await client.post(path)).status_code == 405
