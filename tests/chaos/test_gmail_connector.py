"""The Gmail connector killed again and again, at a Gmail that fails in every way: each message arrives exactly once.

Time runs a hundred times faster for the quota, the emulator and its outages, so that a minute's quota and five minutes
of 503 are felt. The emulator counts and does not limit: keeping within the quota is the connector's doing.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random

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

    fresh = 0
    copies = 0
    _news = asyncio.Event()

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
async def scene(folder: Path, family: Family, rng: Random) -> AsyncGenerator[Scene]:
    fast = FastTime(SPEED)
    emulator = Emulator(Mailbox(OWNER, rng, clock=fast.now), TOKEN, sleep=fast.sleep, seed=rng.randrange(2**32))
    database = await open_database(folder)
    await database.run(keep_account(new_id(), "gmail", ENDPOINT, OWNER, wall_clock()))
    services = services_on(database, wall_clock)
    intake = CountingIntake(database, None, queues=services.queues, tally=services.tally)
    object.__setattr__(services, "intake", intake)
    state = folder / "state"
    state.mkdir()
    try:
        async with (
            running_emulator(emulator) as gmail,
            served(services) as board,
            nursery(folder, family, CONNECTOR) as children,
        ):
            token = await board.token("connector", ENDPOINT)
            yield Scene(state, emulator, gmail, board, token, intake, children, fast, rng)
    finally:
        await database.close()


async def test_a_connector_killed_at_a_failing_gmail_hands_every_message_in_exactly_once(
    tmp_path: Path, children: Family, rng: Random
) -> None:
    kills, mails = scale(3, 20), scale(1_000, 10_000)
    async with scene(tmp_path, children, rng) as stage:
        stage.deliver(mails // 5, age=timedelta(days=6))
        faults = stage.emulator.faults
        # Three calls of ten are refused, until this has cost as much as every seventh call.
        faults.order(Fault(429, "rateLimitExceeded", share=0.3, times=mails // 7))
        faults.order(Fault(kind="reset", path="/gmail/", share=0.05, times=mails // 100))
        faults.order(Fault(kind="drop_reply", path="/gmail/", share=0.05, times=max(2, mails // 500)))
        feeding = asyncio.create_task(stage.keep_delivering(mails))
        connector = await stage.start()
        moments = [int(mails * (0.1 + 0.8 * (number + rng.random()) / kills)) for number in range(kills)]
        for number, moment in enumerate(moments):
            await stage.intake.until(moment)
            await asyncio.sleep(rng.uniform(0, LATEST_KILL_S))
            await connector.kill()
            # Looking back would find again what was lost before, so most of the kills come afterwards.
            if number == kills // 3:
                stage.deliver(20)
                stage.emulator.mailbox.expire_history()
            if number == kills // 2:
                faults.order(Fault(503, seconds=300))
            connector = await stage.start()
        await feeding
        await stage.intake.until(len(stage.delivered))
        await connector.kill()
        arrived = await stage.arrived()
        counters = stage.emulator.quota.counters
        most, calls = stage.emulator.quota.most_in_a_minute(OWNER), counters.calls.total()
        print(
            f"{len(arrived)} messages, {kills} kills, {calls} calls ({calls / len(arrived):.2f} a message), "
            f"{stage.intake.copies} copies, {most} units in a minute, {dict(counters.refused)}, "
            f"{stage.fast.seconds() / SPEED:.1f} s"
        )
    assert sorted(arrived) == sorted(stage.delivered), "something is missing, or came twice"
    assert most <= PER_MINUTE
    assert calls <= 1.5 * len(arrived)
    assert {"refuse", "reset", "drop_reply"} <= set(faults.struck)
    assert counters.answers[503] > 0
    assert counters.answers[404] > 0
