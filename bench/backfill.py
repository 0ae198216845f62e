"""The two processes of the backfill claim: `python -m bench.backfill emulator COUNT`, `… connector COUNT`.

The emulator holds a generated archive of COUNT messages over ten years, and knows no quota. Before it serves, it works
out by itself which of them a backfill of every category has to ingest. The connector walks the archive backward at the
highest rate that a job may have: it searches each span, reads, gives tiers and categories, and ingests at the
switchboard in its own process, each batch durable on SQLite and reported before the next. It prints how long that took,
by the clock and by the processor, and how much memory it took more in the second half.
"""

import asyncio
import contextlib
import json
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from random import Random

import httpx2
import uvloop

from postroom.core.backfill.job import HIGHEST_CAP, HIGHEST_RATE, BackfillJob, NewBackfill
from postroom.core.mail.categories import CATEGORIES, categories_of, queries_of
from postroom.core.mail.ingestion import IngestionFacts
from postroom.core.mail.mime import parse_message
from postroom.core.mail.tiers import Known
from postroom.core.roles import Principal, Role
from postroom.interfaces.http.mcp.mcp_server import build_server
from postroom.mailboxes.backfill.walk import JobStopped
from postroom.mailboxes.following.knowledge import Knowledge
from postroom.mailboxes.gmail.client import GmailClient
from postroom.mailboxes.gmail.following.live import GmailConnector
from postroom.operations.backfill.backfill import Backfills
from postroom.operations.people.audit import signature
from postroom.sources.checkpoint import Checkpoint
from postroom.sources.mcp_switchboard import McpSwitchboard, switchboard_within
from postroom.sources.switchboard_client import BackfillProgress, BackfillStatus
from postroom.store.engine.opening import open_database
from postroom.system.private_files import DATABASE
from postroom.system.wall_clock import wall_clock
from postroom_sandbox.archive import fill_archive, oldest_day
from postroom_sandbox.emulator import Emulator
from postroom_sandbox.mailbox import Mailbox

from .live_mail import ENDPOINT, SETTLED, TOKEN, memory_mib, services_on
from .order import answer
from .tiering import USER
from .told_emulator import Words, serve, told_emulator

SEED = 2026
# As `backfill.progress_interval` is unless somebody sets it.
PROGRESS_INTERVAL = 50


@dataclass(frozen=True)
class Outcome:
    """Seconds by the clock and by the processor, messages read and ingested, those in the database that were not
    expected there, or not, or twice, and MiB that memory grew in the second half.
    """

    status: str
    seconds: float
    cpu_s: float
    read: int
    ingested: int
    expected: int
    wrong: int
    grown_mib: float


async def emulate(count: int) -> None:
    mailbox = Mailbox(USER, Random(SEED))
    fill_archive(mailbox, SEED, count)
    about = {"since": mailbox.history_id, "expected": sorted(_to_ingest(mailbox))}

    async def nothing(_told: Words) -> Words:
        return {}

    await serve(Emulator(mailbox, TOKEN), about, nothing)


def _to_ingest(mailbox: Mailbox) -> Iterator[str]:
    """The incoming messages that a search for the categories finds, and that are in one of them."""
    found = {each.id: each for query in queries_of(list(CATEGORIES.values()), USER) for each in mailbox.search(query)}
    known = Known.of([USER])
    for id, message in found.items():
        if "SENT" not in message.labels and categories_of(IngestionFacts.of(parse_message(message.mail.raw)), known):
            yield id


class _Gauge:
    """The switchboard's backfill tools; notes how much memory there is when half of the messages are reported."""

    def __init__(self, board: McpSwitchboard, expected: int) -> None:
        self._board = board
        self._settled_at = int(expected * SETTLED)
        self._settled_mib: float | None = None
        self._processed = 0
        self.poll_backfill = board.poll_backfill

    async def report_backfill(self, progress: BackfillProgress) -> BackfillStatus:
        self._processed += progress.processed
        if self._settled_mib is None and self._processed >= self._settled_at:
            self._settled_mib = memory_mib()
        return await self._board.report_backfill(progress)

    @property
    def grown_mib(self) -> float:
        return memory_mib() - (self._settled_mib or 0.0)


async def connect(count: int) -> Outcome:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        emulator = await stack.enter_async_context(told_emulator("bench.backfill", str(count)))
        expected: list[str] = emulator.said["expected"]
        database = await open_database(folder)
        stack.push_async_callback(database.close)
        http = await stack.enter_async_context(httpx2.AsyncClient(trust_env=False, timeout=60))
        services = await services_on(database)
        board = switchboard_within(build_server(services, Principal(Role.CONNECTOR, ENDPOINT)))
        checkpoint = Checkpoint(folder / "checkpoint.json")
        checkpoint.write(emulator.said["since"])
        connector = GmailConnector(
            GmailClient(http, emulator.said["address"], _token),
            board,
            checkpoint,
            email=USER,
            endpoint_identity=ENDPOINT,
            clock=wall_clock,
            knowledge=Knowledge([USER]),
            folder=folder,
        )
        created = await create_backfill(services.parts.backfills, oldest_day(wall_clock()), wall_clock().date())
        gauge = _Gauge(board, len(expected))
        backfills = connector.backfill(gauge, PROGRESS_INTERVAL, time.monotonic)
        clock, cpu = time.perf_counter(), time.process_time()
        assignment = await gauge.poll_backfill("gmail", ENDPOINT)
        assert assignment is not None
        with contextlib.suppress(JobStopped):
            await backfills.begin(assignment).work()
        seconds, cpu_s = time.perf_counter() - clock, time.process_time() - cpu
        grown = gauge.grown_mib
        job = await services.parts.backfills.load(created.id)
        read, ingested = job.rows_processed + job.rows_skipped, job.rows_processed
        wrong = _wrong(folder / DATABASE, expected)
        return Outcome(job.status, seconds, cpu_s, read, ingested, len(expected), wrong, grown)


async def create_backfill(backfills: Backfills, first: date, last: date) -> BackfillJob:
    """A backfill of all categories at the highest rate, which no cap stops."""
    new = NewBackfill("gmail", ENDPOINT, tuple(CATEGORIES), first, last, HIGHEST_RATE, HIGHEST_CAP, consent=True)
    return (await backfills.create(new, signature("bench", "admin"))).job


def _wrong(file: Path, expected: list[str]) -> int:
    """How many messages are in the database but not expected there, expected but not there, or there twice."""
    with contextlib.closing(sqlite3.connect(file)) as connection:
        stored = [id for (id,) in connection.execute("SELECT external_event_id FROM envelopes")]
    return len(set(stored) ^ set(expected)) + len(stored) - len(set(stored))


async def _token() -> str:
    return TOKEN


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if sys.argv[1] == "emulator":
            runner.run(emulate(int(sys.argv[2])))
        else:
            answer(json.dumps(asdict(runner.run(connect(int(sys.argv[2]))))))
