"""A process that enqueues as fast as it can and announces each id after its enqueue has returned.

python -m support.crash.producer_process --data-dir FOLDER [--url URL] --prefix a [--halt "inside enqueue_many" --hit 3]
    [--halt-disk "wal write 7"] [--weight 100000] [--most 2000]
"""

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from postroom.store.engine.opening import open_database
from support.crash import halting_disk
from support.crash.counted_jobs import CATALOGUE
from support.crash.points import Halt, HaltingDatabase, Point
from support.fork_server import run_as_child
from support.job_queue import JobQueue
from support.processes import announce

CALLERS = 8


async def main(arguments: argparse.Namespace) -> None:
    disk = halting_disk.install(halting_disk.Spot.parse(arguments.halt_disk)) if arguments.halt_disk else None
    halt = Halt(Point.parse(arguments.halt) if arguments.halt else None, arguments.hit)
    database = HaltingDatabase(await open_database(arguments.data_dir, arguments.url), halt)
    queue = JobQueue(database, CATALOGUE)
    announce("ready")
    if disk is not None:
        disk.arm(arguments.data_dir)
    async with asyncio.TaskGroup() as callers:
        for number in range(CALLERS):
            callers.create_task(
                enqueue(queue, f"{arguments.prefix}-{number}", "x" * arguments.weight, arguments.most // CALLERS)
            )


async def enqueue(queue: JobQueue, prefix: str, filling: str, most: int) -> None:
    for number in range(1, most + 1):
        accepted = await queue.enqueue("parcel", {"filling": filling}, key=f"{prefix}-{number}")
        announce("accepted", f"{prefix}-{number}", accepted.id)


def parse(words: Sequence[str]) -> argparse.Namespace:
    parser: Any = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--url")
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--halt")
    parser.add_argument("--hit", type=int, default=1)
    parser.add_argument("--halt-disk")
    parser.add_argument("--weight", type=int, default=10)
    parser.add_argument("--most", type=int, default=1_000_000)
    return parser.parse_args(words)


if __name__ == "__main__":
    run_as_child(main, parse)
