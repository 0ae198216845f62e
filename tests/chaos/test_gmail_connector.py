"""The Gmail connector killed again and again, at a Gmail that fails in every way: each message arrives exactly once.

Time runs a hundred times faster for the quota, the emulator and its outages, so that a minute's quota and five minutes
of 503 are felt. The emulator counts and does not limit: keeping within the quota is the connector's doing.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

from chaos.fast_time import FastTime
from chaos.nursery import Nursery, nursery
from conftest import scale
from postroom.core.errors import PostroomError
from postroom.sandbox.emulator import Emulator
from postroom.sandbox.faults import Fault
from postroom.sandbox.mailbox import Mailbox
from postroom.sandbox.server import running_emulator
from postroom.store.acceptance import Accepted
from postroom.store.clock import wall_clock
from postroom.store.ids import new_id
from postroom.store.mail import keep_account
from postroom.store.opening import open_database
from postroom.switchboard.intake import Intake
from support.processes import Child, Family
from support.switchboard import Served, served, services_on

CONNECTOR = "chaos.gmail_process"
OWNER = "mara@lindqvist.example"
ENDPOINT = f"gmail:user:{OWNER}"
TOKEN = "token-of-the-sandbox"
SPEED = 100.0
PER_MINUTE = 6_000
LATEST_KILL_S = 0.05
AHEAD = 60
PATIENCE_S = 120.0


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
        async with asyncio.timeout(PATIENCE_S):
            while self.fresh < count:
                await self._news.wait()


@dataclass
class Scene:
    """A mailbox that fills, a switchboard, and the connector of the moment."""

    folder: Path
    emulator: Emulator
    gmail: str
    board: Served
    token: str
    intake: CountingIntake
    nursery: Nursery
    fast: FastTime
    rng: Random
    mails: int
    delivered: list[str] = field(default_factory=list[str])

    async def start(self) -> Child:
        child = await self.nursery.start(
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
async def scene(folder: Path, family: Family, rng: Random, mails: int) -> AsyncGenerator[Scene]:
    fast = FastTime(SPEED)
    emulator = Emulator(Mailbox(OWNER, rng, clock=fast.now), TOKEN, sleep=fast.sleep, seed=rng.randrange(2**32))
    database = await open_database(folder)
    await database.run(keep_account(new_id(), "gmail", ENDPOINT, OWNER, wall_clock()))
    services = services_on(database, wall_clock)
    intake = CountingIntake(database, None, queues=services.queues, tally=services.tally)
    object.__setattr__(services, "intake", intake)
    state = folder / "state"
    try:
        async with (
            running_emulator(emulator) as gmail,
            served(services) as board,
            nursery(folder, family, CONNECTOR) as children,
        ):
            token = await board.token("connector", ENDPOINT)
            yield Scene(state, emulator, gmail, board, token, intake, children, fast, rng, mails)
    finally:
        await database.close()


@dataclass(frozen=True)
class Bill:
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


def bill(stage: Scene, arrived: Sequence[str]) -> Bill:
    quota, counters = stage.emulator.quota, stage.emulator.quota.counters
    return Bill(
        messages=len(arrived),
        calls=counters.calls,
        # Messages are read in batches and in nothing else.
        requests=counters.batches + counters.calls.total() - counters.calls["messages.get"],
        most_in_a_minute=quota.most_in_a_minute(OWNER),
        copies=stage.intake.copies,
        answers=counters.answers,
        resets=stage.emulator.faults.struck.count("reset"),
        seconds=stage.fast.seconds() / stage.fast.speed,
    )


class Undisturbed:
    """Nothing happens to the connector. What is delivered, and when, is the same in every run."""

    def __init__(self, stage: Scene, moments: Sequence[int]) -> None:
        self.stage = stage
        self.moments = moments

    def begin(self) -> None:
        """Before the connector starts."""

    async def at_moment(self, number: int, connector: Child) -> Child:
        """So many messages have arrived as this moment says."""
        if number == len(self.moments) // 3:
            self.stage.deliver(20)
        return connector


class Disturbed(Undisturbed):
    """At every moment the connector is killed, and Gmail fails throughout."""

    def begin(self) -> None:
        faults = self.stage.emulator.faults
        faults.order(Fault(429, "rateLimitExceeded", share=0.3))
        faults.order(Fault(kind="reset", path="/gmail/", share=0.01))
        faults.order(Fault(kind="drop_reply", path="/gmail/", share=0.005))

    async def at_moment(self, number: int, connector: Child) -> Child:
        stage, count = self.stage, len(self.moments)
        await asyncio.sleep(stage.rng.uniform(0, LATEST_KILL_S))
        await connector.kill()
        await super().at_moment(number, connector)
        # Looking back would find again what was lost before, so most of the kills come afterwards.
        if number == count // 3:
            stage.emulator.mailbox.expire_history()
        if number == count // 2:
            stage.emulator.faults.order(Fault(503, seconds=300))
        return await stage.start()


async def live_through(stage: Scene, fate: Undisturbed) -> Bill:
    """All mail is delivered while the connector takes it in; afterwards everything has arrived, and only once."""
    stage.deliver(stage.mails // 5, age=timedelta(days=6))
    fate.begin()
    feeding = asyncio.create_task(stage.keep_delivering(stage.mails))
    connector = await stage.start()
    for number, moment in enumerate(fate.moments):
        await stage.intake.until(moment)
        connector = await fate.at_moment(number, connector)
    await feeding
    await stage.intake.until(len(stage.delivered))
    await connector.kill()
    arrived = await stage.arrived()
    assert sorted(arrived) == sorted(stage.delivered), "something is missing, or came twice"
    return bill(stage, arrived)


async def test_a_connector_killed_at_a_failing_gmail_hands_every_message_in_exactly_once(
    tmp_path: Path, children: Family, rng: Random
) -> None:
    kills, mails = scale(3, 20), scale(1_000, 10_000)
    moments = [int(mails * (0.1 + 0.8 * (number + rng.random()) / kills)) for number in range(kills)]
    seed = rng.randrange(2**32)
    async with scene(tmp_path / "undisturbed", children, Random(seed), mails) as stage:
        usual = await live_through(stage, Undisturbed(stage, moments))
        print(f"undisturbed: {usual}")
    async with scene(tmp_path / "disturbed", children, Random(seed), mails) as stage:
        cost = await live_through(stage, Disturbed(stage, moments))
        print(f"{kills} kills: {cost}; {cost.total / usual.total:.3f} times the calls")
        struck = set(stage.emulator.faults.struck)
    assert {"refuse", "reset", "drop_reply"} <= struck
    assert cost.answers[429] >= 0.29 * cost.total
    assert cost.answers[503] > 0
    assert cost.answers[404] > 0
    assert max(usual.most_in_a_minute, cost.most_in_a_minute) <= PER_MINUTE
    assert cost.total <= 1.5 * usual.total
