"""The product as a process that forwards or answers every message, and a mailbox that counts what leaves it.

Now and then, if a test says so, the user deletes the copy of what was just sent: then only a person can tell whether it
was. That person knows the truth.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random

from postroom.core.mail.carrier import MARK
from postroom.core.rules.draft import RuleDraft
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import connect_database, open_database
from postroom.store.outbound import outbound, outbound_answers
from postroom.store.people.audit import Signature
from postroom.store.rules.rules import add_rules
from postroom.system.wall_clock import wall_clock
from postroom_sandbox.emulator import Emulator
from postroom_sandbox.history import Change
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.server import running_emulator
from support.acting import keep_acting_account
from support.crash.evidence import Place
from support.fork_server import ForkServer, fork_server
from support.processes import Child, ProcessGroup

CHILD = "support.crash.product_process"
OWNER = "mara@lindqvist.example"
TOKEN = "token-of-the-sandbox"
PATIENCE_S = 600.0


@dataclass
class Ledger:
    """What has left the mailbox, by the number in its subject."""

    mailbox: Mailbox
    rng: Random
    share_deleted: float = 0.0
    """How many of the copies the user deletes as soon as they are there."""
    left: Counter[str] = field(default_factory=Counter[str])
    deleted: set[str] = field(default_factory=set[str])

    def note(self, change: Change) -> None:
        if change.kind != "messageAdded" or "SENT" not in change.labels:
            return
        message = self.mailbox.get(change.message_id)
        assert message.mail.header(MARK)
        number = message.mail.header("Subject").rpartition(" ")[2]
        self.left[number] += 1
        if self.rng.random() < self.share_deleted:
            self.deleted.add(number)
            self.mailbox.delete(message.id)


@dataclass
class ForwardingSetup:
    """The product as a process of its own that forwards or answers every message, and what comes and leaves."""

    place: Place
    mailbox: Mailbox
    ledger: Ledger
    gmail: str
    fork_server: ForkServer
    rng: Random
    come: int = 0
    asked: set[str] = field(default_factory=set[str])
    """The numbers of the mails about which a person was asked."""

    async def start(self) -> Child:
        words = ("--gmail", self.gmail, "--token", TOKEN, "--email", OWNER)
        child = await self.fork_server.start(CHILD, *self.place.arguments(), *words)
        await child.hear("ready")
        return child

    def receive(self, count: int) -> None:
        for _ in range(count):
            self.come += 1
            word = self.rng.choice(("report", "question"))
            lines = [
                f"From: p{self.come}@example.com",
                f"To: {OWNER}",
                f"Message-ID: <{self.come}@example.com>",
                f"Subject: A {word} {self.come}",
            ]
            self.mailbox.deliver(("\r\n".join(lines) + "\r\n\r\nHello.\r\n").encode())

    async def until_left(self, count: int) -> None:
        """Until so many messages were handled. What waits for a person is answered by one who knows the truth."""
        async with asyncio.timeout(PATIENCE_S):
            while len(self.ledger.left) < count:
                await self._answer_all()
                await asyncio.sleep(0.1)

    async def until_labels(self, message_id: str, hold: Callable[[frozenset[str]], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not hold(self.mailbox.get(message_id).labels):  # noqa: ASYNC110
                await asyncio.sleep(0.1)

    async def settle(self) -> None:
        """Until all that came was handled, and the database knows it."""
        async with asyncio.timeout(PATIENCE_S):
            while len(await self._answer_all()) < self.come or len(self.ledger.left) < self.come:  # noqa: ASYNC110
                await asyncio.sleep(0.1)

    async def _answer_all(self) -> set[str]:
        """The numbers of what is delivered, as far as the database knows."""
        database = connect_database(self.place.folder, self.place.url)
        try:
            found = await database.run(outbound.list_mail(10_000))
            for each in found:
                if each.state == "unknown":
                    await self._answer(database, each)
            return {each.subject.rpartition(" ")[2] for each in found if each.state == "sent"}
        finally:
            await database.close()

    async def _answer(self, database: Database, delivery: outbound.MailView) -> None:
        number = delivery.subject.rpartition(" ")[2]
        self.asked.add(number)
        outcome = "sent" if self.ledger.left[number] else "not_sent"
        await database.run(outbound_answers.resolve_mail(delivery.id, outcome, signed(), wall_clock()))


def signed() -> Signature:
    return Signature(new_id(), "test", "admin")


@asynccontextmanager
async def forwarding_setup(
    place: Place, processes: ProcessGroup, rng: Random, share_deleted: float = 0.0
) -> AsyncGenerator[ForwardingSetup]:
    mailbox = Mailbox(OWNER, rng)
    emulator = Emulator(mailbox, TOKEN, seed=rng.randrange(2**32))
    ledger = Ledger(mailbox, Random(rng.randrange(2**32)), share_deleted)
    mailbox.observers.append(ledger.note)
    data = place.folder / "data"
    data.mkdir()
    place = Place(data, place.server, place.url)
    database = await open_database(place.folder, place.url)
    rules = [
        (new_id(), RuleDraft("Reports", {"subject_contains": "report"}, "forward", {"to": "boss@example.com"})),
        (new_id(), RuleDraft("Questions", {"subject_contains": "question"}, "auto_reply", {"text": "Soon."})),
    ]
    await database.run(add_rules(rules, wall_clock()))
    await keep_acting_account(database, OWNER)
    await database.close()
    async with running_emulator(emulator) as gmail, fork_server(place.folder.parent, processes, CHILD) as children:
        yield ForwardingSetup(place, mailbox, ledger, gmail, children, rng)
