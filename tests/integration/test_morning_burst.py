"""Eight in the morning: fifteen newsletters and a doctor's confirmation arrive together, and the confirmation is first.

Real on every hop: the mailbox over HTTP, the connector that gives each its tier, the switchboard, the buffer, the
dispatcher, and the queue of jobs that it hands over to.
"""

import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path
from random import Random

import httpx2

from postroom.core.jobs.types import CATALOGUE
from postroom.core.roles import Principal, Role
from postroom.intake.buffer import Buffer
from postroom.intake.dispatcher import MOST_OUTSTANDING, Dispatcher
from postroom.interfaces.http.mcp.mcp_server import build_server
from postroom.mailboxes.gmail.client import GmailClient
from postroom.mailboxes.gmail.following.live import GmailConnector
from postroom.sources.checkpoint import Checkpoint
from postroom.sources.mcp_switchboard import switchboard_within
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.jobs import jobs
from postroom.store.mail import mail
from postroom.triage.handlers.payload import uuid_field
from postroom_sandbox.emulator import Emulator
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.server import running_emulator
from support.clocks import ManualClock
from support.patience import PATIENCE_S
from support.product import ENDPOINT, OWNER, TOKEN, raw_mail
from support.switchboard import services_on

DOCTOR = "Your appointment today at 10:15 is confirmed"


class Morning:
    """A mailbox and its connector; nothing takes from the buffer but what the test asks to."""

    def __init__(self, database: Database, clock: ManualClock, mailbox: Mailbox, live: GmailConnector) -> None:
        self.database = database
        self.clock = clock
        self.mailbox = mailbox
        self.live = live
        self.dispatcher = Dispatcher(database, CATALOGUE, clock=clock)

    async def arrive(self, newsletters: int, confirmation: bool = True) -> None:
        """All of them together, the confirmation last of all."""
        for number in range(newsletters):
            self.mailbox.deliver(
                raw_mail(f"News {number}", f"news{number}@news.example", List_Unsubscribe="<https://x>")
            )
        if confirmation:
            self.mailbox.deliver(raw_mail(DOCTOR, "desk@doctor.example"))
        await self.live.sync()

    async def worked(self) -> str:
        """The subject of the message that a worker with one pair of hands would look at next."""
        now, token = self.clock(), new_id()
        await self.database.run(jobs.open_lease(token, "worker", now, now))
        (job,) = await self.database.run(jobs.claim(token, 1, now))
        message = await self.database.run(mail.load_message(uuid_field(job, "message_id")))
        await self.database.run(jobs.finish([job.claim], [], now))
        return message.facts.subject


@contextlib.asynccontextmanager
async def morning(database: Database, clock: ManualClock, folder: Path) -> AsyncGenerator[Morning]:
    mailbox = Mailbox(OWNER, Random(1))

    async def token() -> str:
        return TOKEN

    async with running_emulator(Emulator(mailbox, TOKEN)) as address, httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        await database.run(mail.keep_account(new_id(), "gmail", ENDPOINT, OWNER, clock()))
        live = GmailConnector(
            GmailClient(http, address, token),
            switchboard_within(build_server(services_on(database, clock), Principal(Role.CONNECTOR, ENDPOINT))),
            Checkpoint(folder / "checkpoint.json"),
            email=OWNER,
            endpoint_identity=ENDPOINT,
            clock=clock,
        )
        yield Morning(database, clock, mailbox, live)


async def test_the_confirmation_is_first_out_of_the_buffer(
    database: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with morning(database, clock, tmp_path) as today:
        await today.arrive(15)
        found = await Buffer(database, clock=clock).next("email", 16)
        assert [each.tier for each in found] == ["interactive"] + ["default"] * 15
        assert DOCTOR in str(found[0].envelope)


async def test_the_confirmation_is_the_first_that_a_worker_looks_at(
    database: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with morning(database, clock, tmp_path) as today:
        await today.arrive(15)
        assert await today.dispatcher.tick() == 16
        subjects = [await today.worked() for _ in range(16)]
        assert subjects[0] == DOCTOR
        assert sorted(subjects[1:]) == sorted(f"News {number}" for number in range(15))


async def test_a_confirmation_that_comes_later_overtakes_all_but_the_few_that_were_handed_over_before(
    database: Database, clock: ManualClock, tmp_path: Path
) -> None:
    """However many newsletters wait, few of them are handed over; the next room is for the urgent."""
    async with morning(database, clock, tmp_path) as today:
        await today.arrive(3 * MOST_OUTSTANDING, confirmation=False)
        assert await today.dispatcher.tick() == MOST_OUTSTANDING
        assert await today.dispatcher.tick() == 0
        await today.arrive(0)
        await today.worked()
        assert await today.dispatcher.tick() == 1
        subjects = [await today.worked() for _ in range(MOST_OUTSTANDING)]
        assert subjects.index(DOCTOR) == MOST_OUTSTANDING - 1
