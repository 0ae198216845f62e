"""Contacts' mail among thousands of newsletters on an IMAP server: it is read before nearly all of them, although the
connector is killed again and again; and everything is taken in once.
"""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from postroom.core.mail.accounts import endpoint_of
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import open_database
from postroom.store.mail.mail import keep_account
from postroom.system.wall_clock import wall_clock
from support.crash.burst import CONTACTS, TimedIntake, Waits, burst, moments, person
from support.imap_server import ImapServer
from support.large_folder import LargeFolder
from support.processes import Child, ProcessGroup
from support.scale import SOAK, scale
from support.switchboard import Served, served, services_on

CONNECTOR = "support.crash.imap_process"
OWNER = "mara@lindqvist.example"
ENDPOINT = endpoint_of("imap", OWNER)
NEWSLETTERS, KILLS = scale(500, 5_000), scale(3, 20)
PADDING = b"This and that is cheaper today.\r\n" * 250
AT_MOST_S = 15.0
# All letters at once, and one of the others for every ten of them; and what was being read when the process was killed.
MOST_BEFORE = 20 + 2 + 100
# The last part of the mail comes while the connector is away, bit by bit.
LATER = 5


@dataclass
class Burst:
    folder: Path
    server: ImapServer
    user: str
    inbox: LargeFolder
    board: Served
    token: str
    intake: TimedIntake
    processes: ProcessGroup
    waits: Waits = field(default_factory=Waits)

    async def start(self) -> Child:
        child = await self.processes.start(
            CONNECTOR,
            *("--folder", str(self.folder / "state"), "--port", str(self.server.port), "--user", self.user),
            *("--switchboard", f"{self.board.address}/mcp", "--token", self.token, "--email", OWNER),
            *("--contacts", str(self.folder / "contacts")),
        )
        await child.hear("ready")
        return child

    def deliver(self, messages: list[tuple[int | None, bytes]]) -> None:
        self.inbox.deliver([raw + PADDING for _, raw in messages], datetime.now(UTC), timedelta(0))
        for letter, _ in messages:
            if letter is not None:
                self.waits.begin(person(letter), self.intake)


@asynccontextmanager
async def burst_setup(folder: Path, processes: ProcessGroup, server: ImapServer) -> AsyncGenerator[Burst]:
    (folder / "contacts").write_text("\n".join(CONTACTS))
    user, database = server.new_user(), await open_database(folder)
    # The server makes the folder when somebody opens it.
    client = await asyncio.to_thread(server.second_client, user)
    await asyncio.to_thread(client.select, "INBOX")
    await asyncio.to_thread(client.logout)
    await database.run(keep_account(new_id(), "imap", ENDPOINT, OWNER, wall_clock()))
    services = services_on(database, wall_clock)
    intake = TimedIntake(database, None, queues=services.queues, tally=services.tally)
    intake.clock, intake.letters = time.monotonic, {}
    services = replace(services, intake=intake)
    try:
        async with served(services) as board:
            token = await board.token("connector", ENDPOINT)
            yield Burst(folder, server, user, LargeFolder(server, user), board, token, intake, processes)
    finally:
        await database.close()


async def arrived(setup: Burst) -> list[str]:
    found: list[str] = []
    while leased := await setup.board.services.buffer.next("email", 100):
        found += [each.envelope["event"]["external_event_id"] for each in leased]
    return found


async def test_a_contacts_mail_among_newsletters_is_read_before_them(
    dovecot: ImapServer, tmp_path: Path, children: ProcessGroup, rng: Random
) -> None:
    async with burst_setup(tmp_path, children, dovecot) as setup:
        messages = burst(NEWSLETTERS, OWNER, rng)
        now = len(messages) - len(messages) // LATER
        left = messages[now:]
        await asyncio.to_thread(setup.deliver, messages[:now])
        began = time.monotonic()
        connector = await setup.start()
        for number, moment in enumerate(moments(KILLS, now, rng)):
            await setup.intake.until(moment)
            await connector.kill()
            share = len(left) // (KILLS - number)
            await asyncio.to_thread(setup.deliver, left[:share])
            left = left[share:]
            connector = await setup.start()
        await setup.intake.until(len(messages))
        took = time.monotonic() - began
        await connector.kill()
        waits = setup.waits
        waits.end(setup.intake)
        print(f"{len(messages)} messages in {took:.1f} s, {KILLS} kills; {waits}; {setup.intake.copies} copies")
        found = await arrived(setup)
        assert len(found) == len(set(found)) == len(messages), "something is missing, or came twice"
        # The server may notice later files only after a second, when others are being read.
        assert max(waits.passed_at_first) <= MOST_BEFORE
        assert not SOAK or waits.p95 <= AT_MOST_S
