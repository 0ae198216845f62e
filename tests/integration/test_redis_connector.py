"""`postroom connector redis-stream` in its own process: real signals, real HTTP, a real Redis."""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from postroom.core.errors import PostroomError
from postroom.intake.intake import Intake
from postroom.store.engine.database import Database
from postroom.store.intake.acceptance import Accepted
from postroom.store.intake.connectors import list_connectors
from postroom.system.wall_clock import wall_clock
from support.patience import PATIENCE_S
from support.redis import running_redis
from support.redis_setup import GROUP, IDENTITY, LOOK_AGAIN_S, STREAM
from support.switchboard import Served, served, services_on
from support.warm_start import ForkedProcess


class MurderousIntake(Intake):
    """Kills the connector when its messages are on disk and before it hears of it."""

    victim: ForkedProcess | None = None

    async def ingest_batch(
        self, items: Sequence[object], bound_to: str | None = None
    ) -> list[Accepted | PostroomError]:
        outcomes = await super().ingest_batch(items, bound_to)
        if self.victim is not None:
            self.victim.kill()
            self.victim = None
        return outcomes


class ConnectorSetup:
    """A switchboard over HTTP, a Redis, and how to start connectors between them."""

    def __init__(self, folder: Path, board: Served, intake: MurderousIntake, redis: Redis, url: str) -> None:
        self.folder = folder
        self.board = board
        self.intake = intake
        self.redis = redis
        self.url = url
        self.token: str | None = None

    @contextlib.asynccontextmanager
    async def connector(self, *options: str, **environment: str) -> AsyncGenerator[ForkedProcess]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("POSTROOM_")}
        given = {"POSTROOM_DATA_DIR": str(self.folder / "connector"), **environment}
        if self.token is not None:
            given["POSTROOM_CONNECTOR_TOKEN"] = self.token
        where = ["--url", self.url, "--switchboard", f"{self.board.address}/mcp", "--stream", STREAM, "--consumer", "c"]
        words = ["connector", "redis-stream", *where, "--json", *options]
        process = await asyncio.to_thread(ForkedProcess, words, self.folder, kept | given)
        try:
            yield process
        finally:
            process.kill()
            await asyncio.to_thread(process.communicate)

    async def pending(self) -> int:
        summary: Any = await self.redis.xpending(STREAM, GROUP)
        return summary["pending"]

    async def kept(self) -> list[str]:
        found: list[str] = []
        while deliveries := await self.board.services.buffer.next("gateway", 100):
            found += [each.envelope["event"]["external_event_id"] for each in deliveries]
        return sorted(found)


@pytest.fixture
async def connectors(tmp_path: Path, sqlite: Database) -> AsyncIterator[ConnectorSetup]:
    services = services_on(sqlite, wall_clock)
    intake = MurderousIntake(sqlite, None, queues=services.queues, tally=services.tally)
    services = replace(services, intake=intake)
    with running_redis() as server:
        async with served(services) as board, Redis.from_url(server.url) as redis:
            connectors = ConnectorSetup(tmp_path, board, intake, redis, server.url)
            connectors.token = await board.token("connector", IDENTITY)
            yield connectors


async def ended(process: ForkedProcess) -> tuple[int, str]:
    _, complaints = await asyncio.to_thread(process.communicate)
    assert process.returncode is not None
    return process.returncode, complaints


async def announced(process: ForkedProcess) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE_S):
        return json.loads(await asyncio.to_thread(process.stdout.readline))


async def test_killed_again_and_again_after_acceptance_it_loses_nothing_and_brings_nothing_twice(
    connectors: ConnectorSetup, sqlite: Database
):
    added: list[Any] = [await connectors.redis.xadd(STREAM, {"text": f"text {number}"}) for number in range(40)]
    ids = [each.decode() for each in added]
    for _ in range(2):
        async with connectors.connector("--batch", "10") as process:
            connectors.intake.victim = process
            assert (await ended(process))[0] == -signal.SIGKILL
        assert await connectors.pending() == 10, "accepted, and not acknowledged"
    async with connectors.connector("--batch", "10") as process:
        assert await announced(process) == {"stream": STREAM, "group": GROUP, "consumer": "c", "identity": IDENTITY}
        async with asyncio.timeout(PATIENCE_S):
            while (await _group(connectors.redis))["last-delivered-id"] != ids[-1].encode():  # noqa: ASYNC110
                await asyncio.sleep(LOOK_AGAIN_S)
            while await connectors.pending():  # noqa: ASYNC110
                await asyncio.sleep(LOOK_AGAIN_S)
        process.send_signal(signal.SIGTERM)
        code, complaints = await ended(process)
        assert (code, "Traceback" in complaints) == (0, False), complaints
    assert await connectors.kept() == sorted(ids)
    (seen,) = await sqlite.run(list_connectors())
    assert (seen.connector_type, seen.endpoint_identity, seen.instance_id) == ("redis-stream", IDENTITY, "c")


async def _group(redis: Redis) -> dict[str, Any]:
    (group,) = await redis.xinfo_groups(STREAM)
    return group


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_cleanly_while_it_waits_for_entries(connectors: ConnectorSetup, number: signal.Signals):
    async with connectors.connector() as process:
        await announced(process)
        process.send_signal(number)
        code, complaints = await ended(process)
    assert (code, "Traceback" in complaints) == (0, False), complaints


async def test_a_signal_ends_it_cleanly_while_redis_is_away(connectors: ConnectorSetup):
    connectors.url = "redis://127.0.0.1:1/0"
    async with connectors.connector() as process:
        async with asyncio.timeout(PATIENCE_S):
            while "redis.waiting" not in await asyncio.to_thread(process.stderr.readline):
                pass
        process.send_signal(signal.SIGTERM)
        assert (await ended(process))[0] == 0


async def test_a_token_that_is_not_known_is_reported_in_one_line(connectors: ConnectorSetup):
    connectors.token = (connectors.token or "")[:-4] + "0000"
    async with connectors.connector() as process:
        code, complaints = await ended(process)
    assert code == 1
    assert "is unknown" in complaints
    assert "Traceback" not in complaints
    assert connectors.token not in complaints


async def test_a_token_for_another_stream_is_reported_at_the_start(connectors: ConnectorSetup):
    connectors.token = await connectors.board.token("connector", "redis:other")
    async with connectors.connector() as process:
        code, complaints = await ended(process)
    assert code == 1
    assert "redis:other" in complaints
