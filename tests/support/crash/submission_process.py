"""A submission server, as the product runs it, until it is killed.

    python -m support.crash.submission_process --data-dir FOLDER [--url URL]

It announces `ready PORT`. The sender of `support.submission` submits without logging in.
"""

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from postroom.core.outbound.limits import DailyLimits
from postroom.outbound.submission.submissions import SubmissionLimits
from postroom.store.engine.opening import open_database
from support.fork_server import run_as_child
from support.processes import announce
from support.submission import ADA, submission_server

MANY = 1_000_000


async def main(arguments: argparse.Namespace) -> None:
    database = await open_database(arguments.data_dir, arguments.url)
    limits = SubmissionLimits(per_minute=MANY)
    async with submission_server(database, limits=limits, daily=DailyLimits(MANY), local=ADA, tls=False) as server:
        announce("ready", server.port)
        await asyncio.Event().wait()


def parse(words: Sequence[str]) -> argparse.Namespace:
    parser: Any = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--url")
    return parser.parse_args(words)


if __name__ == "__main__":
    run_as_child(main, parse)
