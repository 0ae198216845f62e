# pyright: basic, reportMissingImports=false
"""procrastinate: one worker process, `python -m bench.peers.procrastinate_peer ORDER` in the peers' environment."""

import asyncio
import time

import procrastinate

from ..order import Order, Outcome, Tally, produce, serve

# It fetches one job per statement and finishes one per statement; concurrency lets finishes overlap the next fetch,
# and how much of it matters little (4, 10, 20 and 40 were tried). LISTEN/NOTIFY stays on, as shipped.
CONCURRENCY = 20
POOL = 20
FILL_CHUNK = 1000
UNFINISHED = "SELECT EXISTS (SELECT 1 FROM procrastinate_jobs WHERE status IN ('todo', 'doing')) AS unfinished"
FINISHED = "SELECT count(*) AS n FROM procrastinate_jobs WHERE status = 'succeeded'"
STORED = "SELECT count(*) AS n FROM procrastinate_jobs"


def make_app(order: Order, pool: int = POOL) -> procrastinate.App:
    connector = procrastinate.PsycopgConnector(conninfo=order.target.address, min_size=pool, max_size=pool)
    return procrastinate.App(connector=connector)


async def prepare(order: Order) -> Outcome:
    async with make_app(order, pool=1).open_async() as app:
        await app.schema_manager.apply_schema_async()
    return Outcome()


async def fill(order: Order) -> Outcome:
    async with make_app(order, pool=1).open_async() as app:
        task = app.configure_task("noop", queue="bench")
        for start in range(0, order.count, FILL_CHUNK):
            end = min(start + FILL_CHUNK, order.count)
            await task.batch_defer_async(*({"n": n} for n in range(start, end)))
    return Outcome()


async def drain(order: Order) -> Outcome:
    tally = Tally(order.count)
    app = make_app(order)

    @app.task(name="noop", queue="bench")
    async def noop(n: int) -> None:
        tally.count_one()

    async with app.open_async():
        await app.connector.pool.wait()

        async def unfinished() -> bool:
            return (await app.connector.execute_query_one_async(UNFINISHED))["unfinished"]

        started = time.perf_counter()
        worker = asyncio.create_task(app.run_worker_async(concurrency=CONCURRENCY, install_signal_handlers=False))
        ended = await tally.wait_until_finished(unfinished)
        worker.cancel()
        await asyncio.wait([worker])
        finished = (await app.connector.execute_query_one_async(FINISHED))["n"]
    return Outcome(seconds=ended - started, handled=tally.handled, finished=finished)


async def enqueue(order: Order) -> Outcome:
    async with make_app(order).open_async() as app:
        await app.connector.pool.wait()
        task = app.configure_task("noop", queue="bench")
        seconds, latencies = await produce(
            lambda number: task.defer_async(n=number), producers=order.producers, total=order.count
        )
        finished = (await app.connector.execute_query_one_async(STORED))["n"]
    return Outcome(seconds=seconds, handled=len(latencies), finished=finished, latencies=latencies)


if __name__ == "__main__":
    serve({"prepare": prepare, "fill": fill, "drain": drain, "enqueue": enqueue})
