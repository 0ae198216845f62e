"""Durable acceptance over SMTP: `python -m bench.submitting postroom|postfix COUNT [--url URL]`.

The server is the product's own, `postroom submission`, in a process of its own, or Postfix; the client is Postfix's
`smtp-source` for both. Neither asks for a login, which smtp-source cannot give. What is finished is counted in the
database, or in the queue.
"""

import argparse
import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping
from pathlib import Path

from postroom.operations.people.audit import signature
from postroom.store.engine.opening import open_database
from postroom.store.outbound.outbound_turns import miscounted_turns
from postroom.store.outbound.senders import NewSender, add_sender, load_sender
from postroom.system.wall_clock import wall_clock

from . import postfix
from .order import Outcome, answer

CONNECTIONS = 64
SIZE = 4096
WARM_UP = 200
START = "from postroom.app import main; main()"
NO_LIMIT = "1000000"


def ours(folder: Path, url: str | None, count: int) -> Outcome:
    postfix.require()
    asyncio.run(add_bench_sender(folder, url))
    with _server(folder, url) as port:
        postfix.submit(port, CONNECTIONS, WARM_UP, SIZE)
        seconds = postfix.submit(port, CONNECTIONS, count, SIZE)
    return Outcome(seconds=seconds, handled=count, finished=asyncio.run(_accepted(folder, url)) - WARM_UP)


@contextlib.contextmanager
def _server(folder: Path, url: str | None) -> Generator[int]:
    port = postfix.free_port()
    settings = {
        "POSTROOM_SUBMISSION_PORT": str(port),
        "POSTROOM_SUBMISSION_LOCAL_SENDER": postfix.SENDER,
        "POSTROOM_SUBMISSION_MAX_PER_MINUTE": NO_LIMIT,
        "POSTROOM_OUTBOUND_DAILY_LIMIT": NO_LIMIT,
        **({} if url is None else {"POSTROOM_DATABASE_URL": url}),
    }
    with program(folder, settings, "submission"):
        postfix.wait_for(port)
        yield port


@contextlib.contextmanager
def program(folder: Path, settings: Mapping[str, str], command: str) -> Generator[int]:
    """Run a command of the product during the block. Yields the id of its process."""
    words = [sys.executable, "-c", START, command, "--data-dir", str(folder)]
    silent = subprocess.DEVNULL
    with subprocess.Popen(words, env={**os.environ, **settings}, stdout=silent, stderr=silent) as process:
        try:
            yield process.pid
        finally:
            process.terminate()


async def add_bench_sender(folder: Path, url: str | None) -> None:
    database = await open_database(folder, url)
    new = NewSender(postfix.SENDER, "example.com", (postfix.SENDER,), plan="team")
    await database.run(add_sender(new, signature("bench", "admin"), wall_clock()))
    await database.close()


async def _accepted(folder: Path, url: str | None) -> int:
    """The mails of the sender, each with one recipient; none if the queue has miscounted them."""
    database = await open_database(folder, url)
    shown = await database.run(load_sender(postfix.SENDER, wall_clock()))
    wrong = await database.run(miscounted_turns())
    await database.close()
    return 0 if wrong else shown.accepted_today


def theirs(folder: Path, count: int) -> Outcome:
    folder.chmod(0o755)  # its daemons are other users
    with postfix.running(folder) as port:
        postfix.submit(port, CONNECTIONS, WARM_UP, SIZE)
        seconds = postfix.submit(port, CONNECTIONS, count, SIZE)
        return Outcome(seconds=seconds, handled=count, finished=postfix.held(folder) - WARM_UP)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("subject", choices=["postroom", "postfix"])
    parser.add_argument("count", type=int)
    parser.add_argument("--url")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="postroom-bench-mail-") as name:
        folder = Path(name)
        outcome = theirs(folder, given.count) if given.subject == "postfix" else ours(folder, given.url, given.count)
    answer(outcome.to_json())


if __name__ == "__main__":
    main()
