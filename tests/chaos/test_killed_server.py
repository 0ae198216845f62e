"""SIGKILL of the test's own PostgreSQL server, with all its backends, under load; then it is restarted."""

import asyncio
import signal
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from random import Random

import pytest

from support.crash.evidence import Place, check_everything
from support.crash.finishing import WORKER, finish_all
from support.crash.producer import producing
from support.postgres import PostgresServer
from support.processes import Child, ProcessGroup
from support.scale import scale

LONGEST_ABSENCE_S = 3.0
PACE_S = 0.01


@pytest.fixture
def server() -> Generator[PostgresServer]:
    with tempfile.TemporaryDirectory(prefix="postroom-pg-", ignore_cleanup_errors=True) as folder:
        own = PostgresServer(Path(folder))
        own.start()
        try:
            yield own
        finally:
            own.stop()


async def test_workers_are_back_by_themselves_after_the_server_was_killed_and_nothing_is_lost(
    server: PostgresServer, tmp_path: Path, children: ProcessGroup, rng: Random
) -> None:
    place = Place(tmp_path, server, server.url())
    kills = scale(2, 10)
    recoveries: list[float] = []
    async with producing(place, rng, PACE_S) as producer:
        patient = await children.start(WORKER, *place.arguments())
        impatient = await children.start(WORKER, *place.arguments(), "--patience", "0.5")
        workers = [patient, impatient]
        for worker in workers:
            await worker.hear("ended")
        for _ in range(kills):
            await asyncio.sleep(rng.uniform(0, 0.5))
            await asyncio.to_thread(server.kill)
            await asyncio.sleep(rng.uniform(0, LONGEST_ABSENCE_S))
            recoveries += await back_at_work(server, workers)
        for worker in workers:
            worker.signal(signal.SIGTERM)
            assert await worker.ended() == 0, worker.complaints()
    await finish_all(children, place)
    outcome = await check_everything(place, producer.acknowledged)
    print(f"{kills} server kills, {dict(outcome)}, back at work after {[f'{each:.2f} s' for each in recoveries]}")


async def back_at_work(server: PostgresServer, workers: list[Child]) -> list[float]:
    """Starts the server; how long after that each worker has ended a job."""
    await asyncio.to_thread(server.start)
    ready = time.monotonic()
    ends = await asyncio.gather(*(worker.hear("ended", after=ready) for worker in workers))
    return [end.at - ready for end in ends]
