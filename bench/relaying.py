"""Mail through the whole server: `python -m bench.relaying postroom|postfix COUNT [--url URL] [--apart]`.

`smtp-source` submits, the server sends everything on to `smtp-sink`, and the clock stops when that has taken the last
mail. Both servers are told of the same relay and may hold as many conversations with it. Postroom is one process that
does all of its work, or one that accepts and one that delivers (`--apart`). What is finished is counted by the
database, or by the queue that is left.
"""

import argparse
import asyncio
import contextlib
import os
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path

from postroom.store.engine.database import Database
from postroom.store.engine.opening import open_database
from postroom.store.outbound.outbound import list_mail

from . import postfix
from .answers import SubjectFailedError
from .live_mail import memory_mib
from .order import Outcome, answer
from .submitting import CONNECTIONS, NO_LIMIT, SIZE, WARM_UP, add_bench_sender, program

AT_ONCE = "64"
LAST_REPLIES_S = 1.0
"""The sink counts a mail before it replies."""
MAILS = re.compile(rb"mesg=(\d+)")


def ours(folder: Path, url: str | None, count: int, *, apart: bool) -> Outcome:
    postfix.require()
    asyncio.run(add_bench_sender(folder, url))
    sink = postfix.free_port()
    with _relay(folder, url, sink, apart=apart) as (port, processes), _watched(processes) as memory:
        seconds = _relayed(port, sink, count)
    finished = count - asyncio.run(_left(folder, url))
    grown = memory[-1] - memory[len(memory) // 2]
    return Outcome(seconds=seconds, handled=count, finished=finished, grown_mib=grown)


@contextlib.contextmanager
def _watched(processes: list[int]) -> Generator[list[float]]:
    """What the processes have in memory together, looked at twice a second."""
    seen, ended = [sum(map(memory_mib, processes))], threading.Event()

    def look() -> None:
        while not ended.wait(0.5):
            seen.append(sum(map(memory_mib, processes)))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield seen
    finally:
        ended.set()
        looking.join()


@contextlib.contextmanager
def _relay(folder: Path, url: str | None, sink: int, *, apart: bool) -> Generator[tuple[int, list[int]]]:
    port, http = postfix.free_port(), postfix.free_port()
    settings = {
        "POSTROOM_SUBMISSION_ENABLED": "false" if apart else "true",
        "POSTROOM_SUBMISSION_PORT": str(port),
        "POSTROOM_SUBMISSION_LOCAL_SENDER": postfix.SENDER,
        "POSTROOM_SUBMISSION_MAX_PER_MINUTE": NO_LIMIT,
        "POSTROOM_OUTBOUND_DAILY_LIMIT": NO_LIMIT,
        "POSTROOM_OUTBOUND_CONCURRENCY": AT_ONCE,
        "POSTROOM_OUTBOUND_ABUSE_DETECTION": "off",
        "POSTROOM_DELIVERY_CONNECTIONS_FIRST": AT_ONCE,
        "POSTROOM_DELIVERY_CONNECTIONS_MOST": AT_ONCE,
        "POSTROOM_DELIVERY_KEEP_MESSAGES": "10000",
        "POSTROOM_DELIVERY_SMART_HOST": "127.0.0.1",
        "POSTROOM_DELIVERY_SMART_HOST_PORT": str(sink),
        "POSTROOM_DELIVERY_SMART_HOST_TLS": "opportunistic",
        "POSTROOM_WEB_PORT": str(http),
        **({} if url is None else {"POSTROOM_DATABASE_URL": url}),
    }
    with contextlib.ExitStack() as started:
        commands = ("serve", "submission") if apart else ("serve",)
        processes = [started.enter_context(program(folder, settings, each)) for each in commands]
        postfix.wait_for(port)
        yield port, processes


async def _left(folder: Path, url: str | None) -> int:
    """How many mails are not known to have been sent. The sink has them all before the last outcomes are stored."""
    database = await open_database(folder, url)
    try:
        left = await _not_sent(database)
        for _ in range(100):
            if not left:
                break
            await asyncio.sleep(0.1)
            left = await _not_sent(database)
        return left
    finally:
        await database.close()


async def _not_sent(database: Database) -> int:
    return sum(each.state != "sent" for each in await database.run(list_mail(1000)))


def theirs(folder: Path, count: int) -> Outcome:
    folder.chmod(0o755)  # its daemons are other users
    sink = postfix.free_port()
    with postfix.running(folder, relay=sink) as port:
        seconds = _relayed(port, sink, count)
        return Outcome(seconds=seconds, handled=count, finished=count - postfix.queued(folder))


def _relayed(port: int, sink: int, count: int) -> float:
    with _sink(sink) as taken:
        postfix.submit(port, CONNECTIONS, WARM_UP, SIZE)
        taken(WARM_UP)
        started = time.perf_counter()
        postfix.submit(port, CONNECTIONS, count, SIZE)
        taken(WARM_UP + count)
        seconds = time.perf_counter() - started
        time.sleep(LAST_REPLIES_S)
    return seconds


@contextlib.contextmanager
def _sink(port: int) -> Generator[Callable[[int], None]]:
    """A server that takes mail and forgets it. Yields what waits until it has taken so many."""
    command = [postfix.SMTP_SINK, "-c", "-u", "postfix", f"127.0.0.1:{port}", "256"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            postfix.wait_for(port)
            yield partial(_wait_for_mails, process)
        finally:
            process.terminate()


def _wait_for_mails(process: subprocess.Popen[bytes], count: int) -> None:
    """Read the counters that the sink prints after each mail."""
    assert process.stdout is not None
    shown = b""
    while chunk := os.read(process.stdout.fileno(), 65536):
        shown = (shown + chunk)[-1000:]
        mails = MAILS.findall(shown)
        if mails and int(mails[-1]) >= count:
            return
    raise SubjectFailedError(f"smtp-sink ended before it had {count} mails")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("subject", choices=["postroom", "postfix"])
    parser.add_argument("count", type=int)
    parser.add_argument("--url")
    parser.add_argument("--apart", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="postroom-bench-mail-") as name:
        folder = Path(name)
        if given.subject == "postfix":
            outcome = theirs(folder, given.count)
        else:
            outcome = ours(folder, given.url, given.count, apart=given.apart)
    answer(outcome.to_json())


if __name__ == "__main__":
    main()
