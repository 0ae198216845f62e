"""Writing to SQLite beside four readers that overlap: `python -m bench.beside_readers postroom|raw MIB`.

Each reader holds a snapshot for some 0.2 s and begins the next at once, so that at every moment somebody reads from the
past. What is handled is the largest that the write-ahead log became, in MiB.
"""

import asyncio
import itertools
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

from postroom.core.errors import TookTooLong
from postroom.core.jobs.types import Catalogue, JobType
from postroom.store.engine.database import Script, Text, query, sql
from postroom.store.engine.opening import FILE, open_database
from postroom.store.engine.write_ahead_log import MIB, log_bytes
from support.job_queue import JobQueue

from .order import Outcome, answer, produce
from .raw.sqlite import SCHEMA, GroupCommit, connect

PARCEL = 64 * 1024
WRITERS, READERS = 8, 4
SLOW = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000) SELECT count(*) FROM n"
CATALOGUE = Catalogue(JobType("parcel"))


@query
def read_slowly() -> Script[None]:
    yield sql("count_jobs")
    yield Text(SLOW)


async def postroom(folder: Path, count: int) -> Outcome:
    database = await open_database(folder)
    queue = JobQueue(database, CATALOGUE)

    async def read_forever(delay: float) -> None:
        await asyncio.sleep(delay)
        while True:
            try:
                await database.run(read_slowly())
            except TookTooLong:
                continue

    async def write(_number: int) -> object:
        return await queue.enqueue("parcel", {"filling": "x" * PARCEL})

    reading = [asyncio.create_task(read_forever(number / 20)) for number in range(READERS)]
    outcome = await _measured(folder / FILE, write, count)
    for task in reading:
        task.cancel()
    await asyncio.gather(*reading, return_exceptions=True)
    await database.close()
    return outcome


async def raw(folder: Path, count: int) -> Outcome:
    """A bare group commit, with SQLite's own checkpoints."""
    file, ended = folder / FILE, threading.Event()
    connection = connect(str(file))
    connection.execute(SCHEMA)
    connection.close()

    def read_forever(delay: float) -> None:
        reader = connect(str(file))
        ended.wait(delay)
        while not ended.is_set():
            reader.execute("BEGIN; SELECT count(*) FROM jobs").fetchall()
            reader.execute(SLOW).fetchall()
            reader.execute("COMMIT")
        reader.close()

    threads = [threading.Thread(target=read_forever, args=(number / 20,)) for number in range(READERS)]
    for thread in threads:
        thread.start()
    commit = GroupCommit(str(file))
    outcome = await _measured(file, lambda number: commit.append({"n": number, "filling": "x" * PARCEL}), count)
    ended.set()
    for thread in threads:
        thread.join()
    await commit.close()
    return outcome


async def _measured(file: Path, write: Callable[[int], Awaitable[object]], count: int) -> Outcome:
    largest = 0
    written = itertools.count(1)

    async def write_and_look(number: int) -> object:
        nonlocal largest
        result = await write(number)
        largest = max(largest, log_bytes(file))
        next(written)
        return result

    seconds, latencies = await produce(write_and_look, producers=WRITERS, total=count)
    return Outcome(seconds=seconds, handled=largest // MIB, finished=next(written) - 1, latencies=latencies)


def main(name: str, mib: int) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        side = {"postroom": postroom, "raw": raw}[name]
        return asyncio.run(side(Path(folder), mib * MIB // PARCEL))


if __name__ == "__main__":
    answer(main(sys.argv[1], int(sys.argv[2])).to_json())
