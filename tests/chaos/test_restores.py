"""Backups made and restored under load: nothing is sent twice, and nothing that was there is lost.

The product runs as a process of its own and forwards or answers every message. Again and again a backup is made while
it works, more mail comes and is handled, the process is killed, and the backup is restored. The mailbox counts what
leaves it. Now and then the user deletes the copy of what was just sent: then only a person can tell whether it was.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from postroom.backup.make import Source, make_backup
from postroom.backup.restore import RestoreTarget as Target
from postroom.backup.restore import restore_backup
from postroom.core.mail.carrier import MARK
from postroom.core.rules.draft import RuleDraft
from postroom.store import outbound, outbound_answers
from postroom.store.audit import Signature
from postroom.store.engine.clock import wall_clock
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import connect_database, open_database
from postroom.store.pauses import ALL, resume
from postroom.store.rules import add_rules
from postroom_sandbox.emulator import Emulator
from postroom_sandbox.history import Change
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.server import running_emulator
from support.crash.evidence import Place
from support.fork_server import ForkServer, fork_server
from support.processes import Child, ProcessGroup
from support.scale import scale

CHILD = "support.crash.product_process"
OWNER = "mara@lindqvist.example"
TOKEN = "token-of-the-sandbox"
DELETED = 0.05
PATIENCE_S = 600.0
PER_ROUND = 6


@dataclass
class Ledger:
    """What has left the mailbox, by the number in its subject."""

    mailbox: Mailbox
    rng: Random
    left: Counter[str] = field(default_factory=Counter[str])
    deleted: set[str] = field(default_factory=set[str])

    def note(self, change: Change) -> None:
        if change.kind != "messageAdded" or "SENT" not in change.labels:
            return
        message = self.mailbox.get(change.message_id)
        assert message.mail.header(MARK)
        number = message.mail.header("Subject").rpartition(" ")[2]
        self.left[number] += 1
        if self.rng.random() < DELETED:
            self.deleted.add(number)
            self.mailbox.delete(message.id)


@dataclass
class RestoreSetup:
    place: Place
    backups: Path
    mailbox: Mailbox
    ledger: Ledger
    gmail: str
    fork_server: ForkServer
    rng: Random
    come: int = 0
    asked: int = 0

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

    async def back_up(self, number: int) -> Path:
        file = self.backups / f"{number}.postroom-backup"
        await make_backup(Source(self.place.folder, self.place.url, []), file)
        return file

    async def restore(self, file: Path) -> None:
        target = Target(self.place.folder, self.place.url, replace=True)
        await restore_backup(file, target, signed(), datetime.now(UTC))
        database = connect_database(self.place.folder, self.place.url)
        try:
            # A restored database is paused; the person who restored it has looked at it.
            assert await database.run(resume(ALL, signed(), wall_clock())) is not None
        finally:
            await database.close()

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
        self.asked += 1
        outcome = "sent" if self.ledger.left[number] else "not_sent"
        await database.run(outbound_answers.resolve_mail(delivery.id, outcome, signed(), wall_clock()))


def signed() -> Signature:
    return Signature(new_id(), "test", "admin")


@asynccontextmanager
async def restore_setup(place: Place, processes: ProcessGroup, rng: Random) -> AsyncGenerator[RestoreSetup]:
    mailbox = Mailbox(OWNER, rng)
    emulator = Emulator(mailbox, TOKEN, seed=rng.randrange(2**32))
    ledger = Ledger(mailbox, Random(rng.randrange(2**32)))
    mailbox.observers.append(ledger.note)
    data = place.folder / "data"
    backups = place.folder / "backups"
    data.mkdir()
    backups.mkdir()
    place = Place(data, place.server, place.url)
    database = await open_database(place.folder, place.url)
    rules = [
        (new_id(), RuleDraft("Reports", {"subject_contains": "report"}, "forward", {"to": "boss@example.com"})),
        (new_id(), RuleDraft("Questions", {"subject_contains": "question"}, "auto_reply", {"text": "Soon."})),
    ]
    await database.run(add_rules(rules, wall_clock()))
    await database.close()
    async with running_emulator(emulator) as gmail, fork_server(backups, processes, CHILD) as children:
        yield RestoreSetup(place, backups, mailbox, ledger, gmail, children, rng)


@pytest.mark.timeout(900)
async def test_mail_that_was_snoozed_after_the_backup_comes_back_after_the_restore(
    place: Place, children: ProcessGroup, rng: Random
) -> None:
    async with restore_setup(place, children, rng) as setup:
        process = await setup.start()
        setup.receive(1)
        await setup.until_left(1)
        backup = await setup.back_up(0)
        database = connect_database(setup.place.folder, setup.place.url)
        later = {"amount": 1, "units": "hours"}
        rule = (new_id(), RuleDraft("Later", {"subject_contains": "later"}, "snooze", later))
        await database.run(add_rules([rule], wall_clock()))
        await database.close()
        message = setup.mailbox.deliver(b"From: p@example.com\r\nSubject: For later\r\n\r\nHello.\r\n")
        await setup.until_labels(message.id, lambda labels: "INBOX" not in labels)
        snoozed = setup.mailbox.get(message.id).labels
        await process.kill()
        await setup.restore(backup)
        process = await setup.start()
        await setup.until_labels(message.id, lambda labels: "INBOX" in labels)
        assert not (snoozed - {"UNREAD"}) & setup.mailbox.get(message.id).labels, "the snooze label is off"
        await process.kill()


@pytest.mark.timeout(scale(900, 7200))
async def test_mail_sent_after_a_backup_is_not_sent_again_by_the_restored_database(
    place: Place, children: ProcessGroup, rng: Random
) -> None:
    rounds = scale(2, 50)
    async with restore_setup(place, children, rng) as setup:
        process = await setup.start()
        for number in range(rounds):
            setup.receive(PER_ROUND)
            await setup.until_left(setup.come - rng.randrange(PER_ROUND))
            backup = await setup.back_up(number)
            setup.receive(PER_ROUND)
            await setup.until_left(setup.come - rng.randrange(PER_ROUND))
            await process.kill()
            await setup.restore(backup)
            process = await setup.start()
        await setup.settle()
        await process.kill()
    twice = {number: count for number, count in setup.ledger.left.items() if count > 1}
    deleted = len(setup.ledger.deleted)
    print(f"{rounds} restores, {setup.come} mails, {deleted} copies deleted, {setup.asked} asked, {twice=}")
    assert not twice
    assert len(setup.ledger.left) == setup.come
