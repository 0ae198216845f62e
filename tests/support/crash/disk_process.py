"""A process whose disk gives it trouble: as someone who may not write there, or with files that may not grow.

    python -m support.crash.disk_process --data-dir FOLDER [--powerless] [--room BYTES]

`--powerless` gives up root before it opens anything. `--room` lets no file grow by more than that; when that has
stopped it, and SIGCONT says so, the room is given back. It announces `accepted`, `refused` and `done`.
"""

import argparse
import asyncio
import os
import resource
import signal
import tempfile
from pathlib import Path
from typing import Any

from postroom.core.errors import PostroomError
from postroom.store.engine.opening import FILE, open_database
from support.crash.counted_jobs import CATALOGUE
from support.job_queue import JobQueue
from support.processes import announce, give_up_root, log_to_stderr

PARCEL_BYTES = 50_000
AFTERWARDS = 5


async def main(arguments: argparse.Namespace) -> None:
    if arguments.powerless:
        await load_everything()
        give_up_root()
    try:
        database = await open_database(arguments.data_dir)
    except PostroomError as error:
        announce("refused", type(error).__name__, error)
        return
    queue = JobQueue(database, CATALOGUE)
    if arguments.room:
        written = os.stat(arguments.data_dir / f"{FILE}-wal").st_size
        await enqueue_until_refused(queue, written + arguments.room)
    for number in range(AFTERWARDS):
        await enqueue(queue, f"after-{number}")
    await database.close()
    announce("done")


async def enqueue_until_refused(queue: JobQueue, largest: int) -> None:
    """Then waits, stopped, until there is room again."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, hard))
    number = 0
    while await enqueue(queue, f"before-{number}"):
        number += 1
    os.kill(os.getpid(), signal.SIGSTOP)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))


async def enqueue(queue: JobQueue, key: str) -> bool:
    try:
        accepted = await queue.enqueue("parcel", {"filling": "x" * PARCEL_BYTES}, key=key)
    except PostroomError as error:
        announce("refused", type(error).__name__, key, error)
        return False
    announce("accepted", key, accepted.id)
    return True


async def load_everything() -> None:
    """Opens a database elsewhere: the program itself may lie where only root may look."""
    with tempfile.TemporaryDirectory() as folder:
        await (await open_database(Path(folder))).close()


def parse() -> argparse.Namespace:
    parser: Any = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--powerless", action="store_true")
    parser.add_argument("--room", type=int)
    return parser.parse_args()


if __name__ == "__main__":
    log_to_stderr()
    asyncio.run(main(parse()))
