"""A process that hands in rounds of messages as fast as it can, and announces each answer after it has come.

    python -m support.crash.intake_process --data-dir FOLDER [--url URL] --prefix a --form single|batch
        [--halt "accept_many before commit" [--hit 3]] [--halt-disk "wal write 7"]

It announces `ready`, `accepted NAME ID`, `refused NAME` and `halt`.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from postroom.core.errors import PostroomError
from postroom.intake.intake import Intake
from postroom.store.engine.opening import open_database
from postroom.store.intake.acceptance import Accepted
from support.crash import halting_disk
from support.crash.gaps import Gap, HaltingInGap
from support.crash.traffic import QUEUES, Sent, rounds
from support.fork_server import run_as_child
from support.processes import announce


async def main(arguments: argparse.Namespace) -> None:
    disk = halting_disk.install(halting_disk.Spot.parse(arguments.halt_disk)) if arguments.halt_disk else None
    gap = Gap.parse(arguments.halt) if arguments.halt else None
    database = HaltingInGap(await open_database(arguments.data_dir, arguments.url), gap, arguments.hit)
    intake = Intake(database, None, queues=QUEUES)
    announce("ready")
    if disk is not None:
        disk.arm(arguments.data_dir)
    for each in rounds(arguments.prefix):
        await (hand_in_one_by_one if arguments.form == "single" else hand_in_together)(intake, each)


async def hand_in_one_by_one(intake: Intake, sent: Sequence[Sent]) -> None:
    for each in sent:
        try:
            tell(each, await intake.ingest(each.data))
        except PostroomError as error:
            tell(each, error)


async def hand_in_together(intake: Intake, sent: Sequence[Sent]) -> None:
    answers = await intake.ingest_batch([each.data for each in sent])
    for each, answer in zip(sent, answers, strict=True):
        tell(each, answer)


def tell(sent: Sent, answer: Accepted | PostroomError) -> None:
    if isinstance(answer, Accepted):
        announce("accepted", sent.name, answer.request_id)
    else:
        announce("refused", sent.name, type(answer).__name__)


def parse(words: Sequence[str]) -> argparse.Namespace:
    parser: Any = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--url")
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--form", choices=["single", "batch"], required=True)
    parser.add_argument("--halt")
    parser.add_argument("--hit", type=int, default=1)
    parser.add_argument("--halt-disk")
    return parser.parse_args(words)


if __name__ == "__main__":
    run_as_child(main, parse)
