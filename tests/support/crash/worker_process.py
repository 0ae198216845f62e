"""A worker process as the product runs one (worker and leadership on uvloop), with short leases and named points.

    python -m support.crash.worker_process --data-dir FOLDER [--url URL] [--halt "inside claim" [--hit 3] [--calmly]]

SIGTERM ends it gracefully. It announces `ready`, `elected`, `beat`, `ended`, `halt` and `stopped`.
"""

import argparse
import asyncio
import os
import signal
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from postroom.jobs.leadership import Leadership
from postroom.jobs.prune import Pruner
from postroom.jobs.rescue import Rescuer
from postroom.jobs.schedule import Recurring, Scheduler
from postroom.jobs.worker import Worker, WorkerOptions
from postroom.store.engine.database import Database
from postroom.store.engine.opening import open_database
from postroom.store.engine.postgres import PostgresDatabase
from support.crash.counted_jobs import CATALOGUE, CountedHandlers, StepLog
from support.crash.points import Halt, HaltingDatabase, Point
from support.fork_server import run_as_child
from support.processes import announce

LEASE = timedelta(seconds=2)
LEADER_LEASE = timedelta(seconds=2)
POLL = timedelta(seconds=0.2)
DIARY = "diary"
OPTIONS = WorkerOptions(
    concurrency=4, lease=LEASE, heartbeat=timedelta(seconds=0.5), drain=timedelta(seconds=5), poll=POLL
)


async def main(arguments: argparse.Namespace) -> None:
    halt = Halt(Point.parse(arguments.halt) if arguments.halt else None, arguments.hit)
    opened = await open_database(arguments.data_dir, arguments.url)
    if arguments.patience and isinstance(opened, PostgresDatabase):
        opened._patience_s = arguments.patience
    database = HaltingDatabase(opened, halt, arguments.calmly)
    clerk = CountedHandlers(StepLog(arguments.data_dir / DIARY), arguments.pause)
    worker = Worker(database, CATALOGUE, clerk.handlers(), OPTIONS)
    leadership = lead(database, [Recurring("every second", arguments.cron, "tick")] if arguments.cron else [])
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, lambda: (worker.stop(), leadership.stop()))
    announce("ready", os.getpid())
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(worker.run())
            tasks.create_task(leadership.run())
    finally:
        await database.close()
    announce("stopped", f"completed={worker.counts.completed}", f"stale={worker.counts.stale}")


def lead(database: Database, recurring: list[Recurring]) -> Leadership:
    scheduler = Scheduler(database, CATALOGUE, recurring)
    return Leadership(database, scheduler, Rescuer(database), Pruner(database), lease=LEADER_LEASE, poll=POLL)


def parse(words: Sequence[str]) -> argparse.Namespace:
    parser: Any = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--url")
    parser.add_argument("--halt")
    parser.add_argument("--hit", type=int, default=1)
    parser.add_argument("--calmly", action="store_true")
    parser.add_argument("--pause", type=float, default=0.005)
    parser.add_argument("--cron")
    parser.add_argument("--patience", type=float)
    return parser.parse_args(words)


if __name__ == "__main__":
    run_as_child(main, parse)
