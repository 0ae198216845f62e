"""A mailbox that fills, a switchboard that counts, and a connector between them in a process that can be killed.

Time runs a hundred times faster for the quota, the emulator and its outages.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

from postroom.core.errors import PostroomError
from postroom.intake.intake import Intake
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import open_database
from postroom.store.intake.acceptance import Accepted
from postroom.store.mail.mail import keep_account
from postroom.system.wall_clock import wall_clock
from postroom_sandbox.emulator import Emulator
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.server import running_emulator
from support.fast_time import FastTime
from support.fork_server import ForkServer, fork_server
from support.processes import Child, ProcessGroup
from support.switchboard import Served, served, services_on

CONNECTOR = "support.crash.gmail_process"
OWNER = "mara@lindqvist.example"
ENDPOINT = f"gmail:user:{OWNER}"
TOKEN = "token-of-the-sandbox"
SPEED = 100.0
AHEAD = 60
PATIENCE_S = 600.0


class CountingIntake(Intake):
    """The intake, with what it has accepted, and a way to wait for more."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.fresh = 0
        self.copies = 0
        self._news = asyncio.Event()

    async def ingest_batch(
        self, items: Sequence[object], bound_to: str | None = None
    ) -> list[Accepted | PostroomError]:
        outcomes = await super().ingest_batch(items, bound_to)
        accepted = [each for each in outcomes if isinstance(each, Accepted)]
        self.fresh += sum(not each.duplicate for each in accepted)
        self.copies += sum(each.duplicate for each in accepted)
        told, self._news = self._news, asyncio.Event()
        told.set()
        return outcomes

    async def until(self, count: int) -> None:
        """However slow it is, as long as something comes."""
        while self.fresh < count:
            async with asyncio.timeout(PATIENCE_S):
                await self._news.wait()


@dataclass
class GmailCrashSetup:
    """A mailbox that fills, a switchboard, and the connector of the moment."""

    folder: Path
    emulator: Emulator
    gmail: str
    board: Served
    token: str
    intake: CountingIntake
    fork_server: ForkServer
    fast: FastTime
    rng: Random
    mails: int
    delivered: list[str] = field(default_factory=list[str])

    async def start(self) -> Child:
        child = await self.fork_server.start(
            CONNECTOR,
            *("--folder", str(self.folder), "--gmail", self.gmail, "--switchboard", f"{self.board.address}/mcp"),
            *("--token", self.token, "--gmail-token", TOKEN, "--email", OWNER),
            *("--speed", str(self.fast.speed), "--begun-at", repr(self.fast.begun_at)),
        )
        await child.hear("ready")
        return child

    def deliver(self, count: int, age: timedelta = timedelta(0)) -> None:
        for _ in range(count):
            number = len(self.delivered)
            raw = (
                f"From: a{number}@store.example\r\nTo: {OWNER}\r\nSubject: {number}\r\n\r\nHello {number}.\r\n".encode()
            )
            received_at = self.fast.now() - age * self.rng.random()
            self.delivered.append(self.emulator.mailbox.deliver(raw, received_at=received_at).id)

    async def keep_delivering(self, until: int) -> None:
        """While the connector follows: as it takes, more comes."""
        while len(self.delivered) < until:
            await self.intake.until(len(self.delivered) - AHEAD)
            self.deliver(min(AHEAD, until - len(self.delivered)))

    async def arrived(self) -> list[str]:
        found: list[str] = []
        while leased := await self.board.services.buffer.next("email", 100):
            found += [each.envelope["event"]["external_event_id"] for each in leased]
        return found


@asynccontextmanager
async def gmail_crash_setup(
    folder: Path, processes: ProcessGroup, rng: Random, mails: int, speed: float = SPEED
) -> AsyncGenerator[GmailCrashSetup]:
    fast = FastTime(speed)
    emulator = Emulator(Mailbox(OWNER, rng, clock=fast.now), TOKEN, sleep=fast.sleep, seed=rng.randrange(2**32))
    database = await open_database(folder)
    await database.run(keep_account(new_id(), "gmail", ENDPOINT, OWNER, wall_clock()))
    services = services_on(database, wall_clock)
    intake = CountingIntake(database, None, queues=services.queues, tally=services.tally)
    services = replace(services, intake=intake)
    state = folder / "state"
    try:
        async with (
            running_emulator(emulator) as gmail,
            served(services) as board,
            fork_server(folder, processes, CONNECTOR) as children,
        ):
            token = await board.token("connector", ENDPOINT)
            yield GmailCrashSetup(state, emulator, gmail, board, token, intake, children, fast, rng, mails)
    finally:
        await database.close()


@dataclass(frozen=True)
class Usage:
    """What a run has cost. `calls` are as Google counts them: each part of a batch is one, answered or refused."""

    messages: int
    calls: Counter[str]
    requests: int
    most_in_a_minute: int
    copies: int
    answers: Counter[int]
    resets: int
    seconds: float

    @property
    def total(self) -> int:
        return self.calls.total()

    def __str__(self) -> str:
        return (
            f"{self.messages} messages, {self.total} calls in {self.requests} requests {dict(self.calls)}, "
            f"{dict(self.answers)}, {self.resets} resets, {self.copies} copies, "
            f"{self.most_in_a_minute} units in the fullest minute, {self.seconds:.1f} s"
        )


def usage(setup: GmailCrashSetup, arrived: Sequence[str]) -> Usage:
    quota, counters = setup.emulator.quota, setup.emulator.quota.counters
    return Usage(
        messages=len(arrived),
        calls=counters.calls,
        # Messages are read in batches and in nothing else.
        requests=counters.batches + counters.calls.total() - counters.calls["messages.get"],
        most_in_a_minute=quota.most_in_a_minute(OWNER),
        copies=setup.intake.copies,
        answers=counters.answers,
        resets=setup.emulator.faults.struck.count("reset"),
        seconds=setup.fast.seconds() / setup.fast.speed,
    )
