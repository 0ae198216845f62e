"""A process that takes from both queues, and acks, nacks or forgets what it got; it sweeps beside that.

    python -m support.crash.consumer_process --data-dir FOLDER [--url URL] --seed 1
        [--halt "lease before commit" [--hit 3]] [--halt-disk "wal write 7"]

It announces `ready`, `delivered ID ATTEMPTS`, `acked ID ATTEMPTS`, `nacked ID ATTEMPTS` and `halt`.
"""

import argparse
import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

from postroom.intake.buffer import Buffer, Delivery
from postroom.store.engine.opening import open_database
from postroom.store.intake.inbox import LeaseRef
from support.crash import halting_disk
from support.crash.gaps import Gap, HaltingInGap
from support.crash.traffic import QUEUES
from support.fork_server import run_as_child
from support.processes import announce

LARGEST_LEASE = 4
WAIT = timedelta(seconds=0.2)
LONGEST_PAUSE_S = 0.04
SWEEP_EVERY_S = 0.1


async def main(arguments: argparse.Namespace) -> None:
    disk = halting_disk.install(halting_disk.Spot.parse(arguments.halt_disk)) if arguments.halt_disk else None
    gap = Gap.parse(arguments.halt) if arguments.halt else None
    database = HaltingInGap(await open_database(arguments.data_dir, arguments.url), gap, arguments.hit)
    buffer = Buffer(database, QUEUES, poll_s=0.05)
    announce("ready")
    if disk is not None:
        disk.arm(arguments.data_dir)
    rng = Random(arguments.seed)
    await buffer.sweep()
    # Whoever is to die while sweeping leaves something to sweep: a consumer would end what is stale on its way.
    consumed = [] if gap is not None and gap.verb == "sweep" else QUEUES.names
    async with asyncio.TaskGroup() as tasks:
        for queue in consumed:
            tasks.create_task(consume_forever(buffer, queue, rng))
        tasks.create_task(sweep_forever(buffer))


async def consume_forever(buffer: Buffer, queue: str, rng: Random) -> None:
    while True:
        deliveries = await buffer.next(queue, rng.randint(1, LARGEST_LEASE), WAIT)
        for each in deliveries:
            announce("delivered", each.message_id, each.attempts)
        verdicts = rng.choices(("acked", "nacked", "forgotten"), (6, 3, 1), k=len(deliveries))
        for verdict in ("acked", "nacked"):
            await end(buffer, verdict, [each for each, its in zip(deliveries, verdicts, strict=True) if its == verdict])
        await asyncio.sleep(rng.uniform(0, LONGEST_PAUSE_S))


async def end(buffer: Buffer, verdict: str, deliveries: Sequence[Delivery]) -> None:
    if not deliveries:
        return
    refs = [LeaseRef(each.message_id, each.lease_token) for each in deliveries]
    outcomes = await (buffer.ack(refs) if verdict == "acked" else buffer.nack(refs, "not now"))
    for each, lost in zip(deliveries, outcomes, strict=True):
        if lost is None:
            announce(verdict, each.message_id, each.attempts)


async def sweep_forever(buffer: Buffer) -> None:
    while True:
        await buffer.sweep()
        await asyncio.sleep(SWEEP_EVERY_S)


def parse(words: Sequence[str]) -> argparse.Namespace:
    parser: Any = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--url")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--halt")
    parser.add_argument("--hit", type=int, default=1)
    parser.add_argument("--halt-disk")
    return parser.parse_args(words)


if __name__ == "__main__":
    run_as_child(main, parse)
