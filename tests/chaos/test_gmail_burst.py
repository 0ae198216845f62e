"""Contacts' mail among thousands of newsletters at Gmail, under its quota: it is taken in within seconds, whenever it
came, although searches are behind and the connector is killed again and again; and everything is taken in once.

Time passes only while the connector waits for its quota or pauses: the figures are those of Gmail's quota, not of the
machine.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import open_database
from postroom.store.mail.mail import keep_account
from postroom.system.wall_clock import wall_clock
from postroom_sandbox.emulator import Emulator
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.quota import NEW_PROJECT
from postroom_sandbox.server import running_emulator
from support.crash.burst import CONTACTS, TimedIntake, Waits, burst, moments, person
from support.crash.gmail_setup import ENDPOINT, OWNER, TOKEN
from support.processes import Child, ProcessGroup
from support.scale import scale
from support.shared_time import SharedTime
from support.switchboard import Served, served, services_on

CONNECTOR = "support.crash.gmail_burst_process"
NEWSLETTERS, KILLS = scale(500, 5_000), scale(3, 20)
SEARCH_LAG = timedelta(seconds=5)
AT_MOST_S = 15.0
# The last part of the mail comes while the first is read.
LATER = 5


@dataclass
class Burst:
    folder: Path
    emulator: Emulator
    gmail: str
    board: Served
    token: str
    intake: TimedIntake
    time: SharedTime
    processes: ProcessGroup
    delivered: list[str] = field(default_factory=list[str])
    waits: Waits = field(default_factory=Waits)

    async def start(self) -> Child:
        child = await self.processes.start(
            CONNECTOR,
            *("--folder", str(self.folder / "state"), "--time", str(self.folder / "time")),
            *("--gmail", self.gmail, "--switchboard", f"{self.board.address}/mcp"),
            *("--token", self.token, "--gmail-token", TOKEN, "--email", OWNER),
            *("--contacts", str(self.folder / "contacts")),
        )
        await child.hear("ready")
        return child

    def deliver(self, messages: list[tuple[int | None, bytes]]) -> None:
        for letter, raw in messages:
            id = self.emulator.mailbox.deliver(raw, received_at=self.time.now()).id
            self.delivered.append(id)
            if letter is not None:
                self.waits.begin(person(letter), self.intake)


@asynccontextmanager
async def burst_setup(folder: Path, processes: ProcessGroup, rng: Random) -> AsyncGenerator[Burst]:
    time = SharedTime(folder / "time")
    (folder / "contacts").write_text("\n".join(CONTACTS))
    mailbox = Mailbox(OWNER, rng, clock=time.now, search_lag=SEARCH_LAG)
    emulator = Emulator(mailbox, TOKEN, limits=NEW_PROJECT, seed=rng.randrange(2**32))
    database = await open_database(folder)
    await database.run(keep_account(new_id(), "gmail", ENDPOINT, OWNER, wall_clock()))
    services = services_on(database, wall_clock)
    intake = TimedIntake(database, None, queues=services.queues, tally=services.tally)
    intake.clock, intake.letters = time.seconds, {}
    services = replace(services, intake=intake)
    try:
        async with running_emulator(emulator) as gmail, served(services) as board:
            token = await board.token("connector", ENDPOINT)
            yield Burst(folder, emulator, gmail, board, token, intake, time, processes)
    finally:
        await database.close()


async def arrived(setup: Burst) -> list[str]:
    found: list[str] = []
    while leased := await setup.board.services.buffer.next("email", 100):
        found += [each.envelope["event"]["external_event_id"] for each in leased]
    return found


@pytest.mark.parametrize("situation", ["following", "first look", "long sleep"])
async def test_a_contacts_mail_among_newsletters_is_taken_in_within_seconds(
    tmp_path: Path, children: ProcessGroup, rng: Random, situation: str
) -> None:
    async with burst_setup(tmp_path, children, rng) as setup:
        messages = burst(NEWSLETTERS, OWNER, rng)
        now = len(messages) - len(messages) // LATER
        if situation != "first look":
            setup.deliver([(None, b"From: a@b.example\r\n\r\nBefore the night.\r\n")])
            connector = await setup.start()
            await setup.intake.until(1)
            await connector.kill()
            setup.time.move(8 * 3600)
        setup.deliver(messages[:now])
        if situation == "long sleep":
            setup.emulator.mailbox.expire_history()
        connector = await setup.start()
        left, parts = messages[now:], KILLS
        for number, moment in enumerate(moments(KILLS, len(messages) * (LATER - 1) // LATER, rng)):
            await setup.intake.until(moment)
            await connector.kill()
            connector = await setup.start()
            share = len(left) // (parts - number)
            setup.deliver(left[:share])
            left = left[share:]
        assert not left
        await setup.intake.until(len(setup.delivered))
        await connector.kill()
        waits, quota = setup.waits, setup.emulator.quota
        waits.end(setup.intake)
        print(
            f"{situation}: {len(setup.delivered)} messages in {setup.time.seconds():.0f} s, {KILLS} kills; {waits}; "
            f"{dict(quota.counters.calls)}, {quota.most_in_a_minute(OWNER)} units in the fullest minute, "
            f"{dict(quota.counters.refused)} refused, {setup.intake.copies} copies"
        )
        assert sorted(await arrived(setup)) == sorted(setup.delivered), "something is missing, or came twice"
        assert quota.most_in_a_minute(OWNER) <= 6_000
        assert waits.p95 <= AT_MOST_S
