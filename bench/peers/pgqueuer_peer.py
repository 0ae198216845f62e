# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
"""pgqueuer: one worker process, `python -m bench.peers.pgqueuer_peer ORDER` in the peers' environment."""

import asyncio
import time
from datetime import timedelta

import asyncpg
from pgqueuer.db import AsyncpgPoolDriver
from pgqueuer.models import Job
from pgqueuer.qm import QueueManager
from pgqueuer.queries import Queries

from ..order import Order, Outcome, Tally, produce, serve

# Claims and its status log go in batches of this size (100 to 2000 were tried), on a pool so that both overlap. All
# tables are logged ("durable", its default); statistics are folded on demand, an option that spares the worker work.
BATCH = 1000
POOL = 10
FILL_CHUNK = 10_000
UNFINISHED = "SELECT EXISTS (SELECT 1 FROM pgqueuer)"
FINISHED = "SELECT count(*) FROM pgqueuer_log WHERE status = 'successful'"
STORED = "SELECT count(*) FROM pgqueuer"


def open_pool(order: Order, size: int = POOL):
    return asyncpg.create_pool(order.target.address, min_size=size, max_size=size)


async def prepare(order: Order) -> Outcome:
    async with open_pool(order, 1) as pool:
        await Queries(AsyncpgPoolDriver(pool)).install()
    return Outcome()


async def fill(order: Order) -> Outcome:
    async with open_pool(order, 1) as pool:
        queries = Queries(AsyncpgPoolDriver(pool))
        for start in range(0, order.count, FILL_CHUNK):
            numbers = range(start, min(start + FILL_CHUNK, order.count))
            payloads = [b'{"n": %d}' % n for n in numbers]
            await queries.enqueue(["noop"] * len(numbers), payloads, [0] * len(numbers))
    return Outcome()


async def drain(order: Order) -> Outcome:
    tally = Tally(order.count)
    async with open_pool(order) as pool:
        manager = QueueManager(Queries(AsyncpgPoolDriver(pool)))

        @manager.entrypoint("noop")
        async def noop(job: Job) -> None:
            tally.count_one()

        started = time.perf_counter()
        worker = asyncio.create_task(manager.run(batch_size=BATCH, log_aggregation_interval=timedelta(0)))
        ended = await tally.wait_until_finished(lambda: pool.fetchval(UNFINISHED))
        manager.shutdown.set()
        await asyncio.wait_for(worker, 60)
    connection = await asyncpg.connect(order.target.address)
    finished = await connection.fetchval(FINISHED)
    await connection.close()
    return Outcome(seconds=ended - started, handled=tally.handled, finished=finished)


async def enqueue(order: Order) -> Outcome:
    async with open_pool(order) as pool:
        queries = Queries(AsyncpgPoolDriver(pool))
        seconds, latencies = await produce(
            lambda number: queries.enqueue("noop", b'{"n": %d}' % number), producers=order.producers, total=order.count
        )
        finished = await pool.fetchval(STORED)
    return Outcome(seconds=seconds, handled=len(latencies), finished=finished, latencies=latencies)


if __name__ == "__main__":
    serve({"prepare": prepare, "fill": fill, "drain": drain, "enqueue": enqueue})
