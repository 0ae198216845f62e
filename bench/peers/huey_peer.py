# pyright: basic, reportMissingImports=false
"""huey on SQLite: one consumer process, `python -m bench.peers.huey_peer ORDER` in the peers' environment.

huey takes a task off its queue before it runs it, so it writes once per job where a lease and a finish write twice;
a crash loses the job in hand. That makes this comparison kinder to huey than its guarantees are.
"""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

from huey import SqliteHuey

from ..order import Order, Outcome, Tally, produce, serve

# Its storage holds one connection behind one lock, so a second worker thread only waits for the first (1, 2 and 4
# were tried). No periodic scheduler, no health checks, WAL (its default) and fsync at every commit, as ours.
WORKERS = 1


def open_queue(order: Order, fsync: bool = True) -> SqliteHuey:
    # Results are off: a no-op returns nothing, and ours stores none.
    return SqliteHuey("bench", filename=order.target.address, fsync=fsync, results=False, timeout=30)


async def prepare(order: Order) -> Outcome:
    open_queue(order).storage.close()
    return Outcome()


async def fill(order: Order) -> Outcome:
    queue = open_queue(order, fsync=False)
    noop = queue.task(name="noop")(lambda n: None)
    for number in range(order.count):
        noop(number)
    queue.storage.close()
    return Outcome()


async def drain(order: Order) -> Outcome:
    tally = Tally(order.count)
    loop = asyncio.get_running_loop()
    queue = open_queue(order)
    handled = 0

    def count_one(n: int) -> None:
        # One worker thread counts; only the last job is told to the loop, so the crossing costs huey nothing.
        nonlocal handled
        handled += 1
        if handled == order.count:
            loop.call_soon_threadsafe(report)

    def report() -> None:
        for _ in range(handled):
            tally.count_one()

    async def unfinished() -> bool:
        return queue.storage.queue_size() > 0

    queue.task(name="noop")(count_one)
    consumer = queue.create_consumer(workers=WORKERS, periodic=False, check_worker_health=False)
    started = time.perf_counter()
    consumer.start()
    ended = await tally.wait_until_finished(unfinished)
    await asyncio.to_thread(consumer.stop, graceful=True)
    return Outcome(seconds=ended - started, handled=handled, finished=order.count - queue.storage.queue_size())


async def enqueue(order: Order) -> Outcome:
    queue = open_queue(order)
    noop = queue.task(name="noop")(lambda n: None)
    loop = asyncio.get_running_loop()
    # Its calls block, so asyncio producers reach it through a thread; more threads only wait for its lock.
    with ThreadPoolExecutor(max_workers=1) as thread:
        seconds, latencies = await produce(
            lambda number: loop.run_in_executor(thread, noop, number), producers=order.producers, total=order.count
        )
    finished = queue.storage.queue_size()
    queue.storage.close()
    return Outcome(seconds=seconds, handled=len(latencies), finished=finished, latencies=latencies)


if __name__ == "__main__":
    serve({"prepare": prepare, "fill": fill, "drain": drain, "enqueue": enqueue})
