"""Actions on a real IMAP mailbox by the product's own handlers: requested, carried out, undone and woken as jobs,
behind the product's gate; and all of the mailbox as another program sees it.
"""

import email
import imaplib
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

from postroom.compose.gate import MailboxGate
from postroom.core.actions.permits import Permit
from postroom.core.actions.safety import Policy
from postroom.core.jobs.types import CATALOGUE
from postroom.jobs.failure import ending_of
from postroom.jobs.run import Handler, JobRun
from postroom.mailboxes.imap.folder_names import decoded
from postroom.mailboxes.imap.mailbox import ImapMailbox, LabelsAs
from postroom.mailboxes.imap.sending import ImapCarrier
from postroom.outbound.queue.delivery import Delivery
from postroom.outbound.queue.pace import Pace
from postroom.store.actions import actions, undos
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.jobs import jobs
from postroom.store.outbound import outbound
from postroom.triage.act.action_requests import ActionRequests
from postroom.triage.act.executor import Executor
from postroom.triage.act.undo import UndoService
from postroom.triage.handlers.action_gmail import ActionGmail
from postroom.triage.handlers.outbound_send import OutboundSend
from postroom.triage.handlers.undo_action import UndoAction
from postroom.triage.handlers.unsnooze_gmail import UnsnoozeGmail
from postroom_sandbox.smtp_server import SmtpServer
from support.clocks import ManualClock
from support.gates import LASTING
from support.imap_mailbox import OpenedMailbox, opened_mailbox
from support.imap_sending import OWNER, at_once, submission_server, submission_to
from support.imap_server import ImapServer
from support.mail import keep_mail
from support.mailboxes import always, given
from support.sqlite import new_sqlite
from support.store.fault_cases_registry import signed

SNOOZED = "Postroom/Snoozed"
SENDER = "shop@store.example"
_LISTED = re.compile(rb'\(([^)]*)\) (?:"(?:[^"\\]|\\.)*"|NIL) (.+)')


class Seen(NamedTuple):
    """A message as another program sees it: what it is, its flags, and when it arrived."""

    subject: str
    flags: frozenset[str]
    arrived: str
    content: bytes


View = Mapping[str, tuple[Seen, ...]]
"""By folder, in the server's spelling; folders without messages are left out."""


def view_of(client: imaplib.IMAP4) -> View:
    """The whole mailbox. What is marked as deleted is shown if it is somebody else's; what we leave is as good as
    gone, and no program shows it.
    """
    found: dict[str, tuple[Seen, ...]] = {}
    for line in client.list()[1]:
        match = _LISTED.match(line if isinstance(line, bytes) else b"".join(line) if isinstance(line, tuple) else b"")
        if match is None or rb"\noselect" in match[1].lower():
            continue
        name = match[2].strip().decode()
        status, _ = client.select(name, readonly=True)
        if status != "OK":
            continue
        _, parts = client.uid("FETCH", "1:*", "(FLAGS INTERNALDATE BODY.PEEK[])")
        messages = [_seen(each) for each in parts if isinstance(each, tuple)]
        shown = [each for each in messages if "\\Deleted" not in each.flags or each.subject == "others"]
        if shown:
            found[_read(name)] = tuple(sorted(shown))
    return found


def _read(name: str) -> str:
    """A name as the server writes it, quoted or not."""
    inner = re.sub(r"\\(.)", r"\1", name[1:-1]) if name.startswith('"') else name
    return decoded(inner.encode())


def _seen(part: tuple[bytes, bytes]) -> Seen:
    head, content = part
    flags = re.search(rb"FLAGS \(([^)]*)\)", head)
    arrived = re.search(rb'INTERNALDATE "([^"]*)"', head)
    assert flags is not None
    assert arrived is not None
    subject = str(email.message_from_bytes(content)["Subject"])
    kept = frozenset(flags[1].decode().split()) - {"\\Recent"}
    return Seen(subject, kept, arrived[1].decode(), content)


@dataclass
class MailboxActions:
    """One mailbox, one database, and the jobs between them, run one after the other."""

    reader: ImapMailbox
    database: Database
    clock: ManualClock
    smtp: SmtpServer
    handlers: dict[str, Handler] = field(default_factory=dict[str, Handler])
    token: UUID = field(default_factory=new_id)
    _stored: int = 0

    def __post_init__(self) -> None:
        def reader_under(permit: Permit) -> ImapMailbox:
            return self.reader.under(permit)

        under, database, clock = given(reader_under), self.database, self.clock
        executor = Executor(database, CATALOGUE, clock, SNOOZED)
        self.handlers = {
            "action.gmail": ActionGmail(executor, under, 1_000),
            "undo.action": UndoAction(UndoService(database, CATALOGUE, clock), under),
            "unsnooze.gmail": UnsnoozeGmail(database, under, SNOOZED, clock),
            "outbound.send": OutboundSend(database, always(self.reader), 1_000, timedelta(days=7), clock=clock),
        }

    def written(self, subject: str) -> bytes:
        """The next message that is stored."""
        self._stored += 1
        return (
            f"From: {SENDER}\r\nTo: {OWNER}\r\nSubject: {subject}\r\nMessage-ID: <{self._stored}@store.example>\r\n"
            f"Date: Tue, 17 Nov 2026 09:30:00 +0000\r\n\r\nHello {subject}\r\n"
        ).encode()

    async def store(self, id: str, subject: str) -> UUID:
        """The message in the database, as the connector hands it in."""
        labels = await self.reader.labels_of(id)
        kept = await keep_mail(
            self.database,
            self.clock,
            self._stored,
            subject=subject,
            sender=SENDER,
            owner=OWNER,
            event_id=id,
            labels=sorted(labels),
            headers=[("Message-ID", f"<{self._stored}@store.example>")],
        )
        await self._drop_jobs()
        return kept

    async def ask(self, message_id: UUID, kind: str, **parameters: Any) -> actions.ActionView:
        """Request the action and carry it out; how it ended."""
        requests = ActionRequests(self.database, CATALOGUE, Policy(), self.clock)
        asked = await requests.ask(
            message_id, kind, parameters, source="user", asked_by="test", why="a test", signed=signed()
        )
        await self.work()
        await self.deliver()
        return await self.action(asked.action_id)

    async def action(self, id: UUID) -> actions.ActionView:
        return next(each for each in await self.database.run(actions.list_actions(1000)) if each.id == id)

    async def undo(self, done: actions.ActionView) -> actions.ActionView:
        undo = undos.UndoChain(CATALOGUE, done.account_id, (done.id,))
        await self.database.run(undos.enqueue_undos([undo], self.clock()))
        await self.work()
        return await self.action(done.id)

    async def wake(self, after: timedelta) -> None:
        self.clock.forward(after.total_seconds())
        await self.work()

    async def work(self) -> None:
        """Run all jobs that are due, until there are none."""
        await self.database.run(jobs.open_lease(self.token, "worker", self.clock(), self.clock() + timedelta(hours=1)))
        await self.database.run(jobs.wake_due(self.clock(), 1000))
        while claimed := await self.database.run(jobs.claim(self.token, 10, self.clock())):
            for job in claimed:
                run = JobRun(job, self.database, self.clock, LASTING)
                try:
                    await self.handlers[job.type](run)
                except Exception as error:
                    ending = ending_of(job, error, CATALOGUE[job.type].retry, Random(1), self.clock())
                    await self.database.run(ending.transaction)
                else:
                    if not run.ended:
                        keys = [job.seq] if job.releases_key else []
                        await self.database.run(jobs.finish([job.claim], keys, self.clock()))
        self.token = new_id()

    async def deliver(self) -> None:
        """Send what waits to be sent."""
        now, pace = self.clock(), Pace(looks=(0.0,))

        def carrier(permit: Permit) -> ImapCarrier:
            return ImapCarrier(self.reader.under(permit), submission_to(self.smtp.port), OWNER, at_once)

        for leased in await self.database.run(outbound.lease_mail(new_id(), 10, now, now + pace.lease)):
            delivery = Delivery(self.database, leased, LASTING, given(carrier), pace, self.clock, at_once)
            await delivery.attempt()

    async def _drop_jobs(self) -> None:
        """Nothing is decided here by rules."""
        await self.database.run(jobs.open_lease(self.token, "worker", self.clock(), self.clock() + timedelta(hours=1)))
        for job in await self.database.run(jobs.claim(self.token, 10, self.clock())):
            await self.database.run(jobs.finish([job.claim], [], self.clock()))
        self.token = new_id()


class ImapActions(MailboxActions):
    """The same on a real server, with another program beside."""

    def __init__(
        self,
        opened: OpenedMailbox,
        database: Database,
        clock: ManualClock,
        gate: MailboxGate,
        smtp: SmtpServer,
        labels_as: LabelsAs,
    ) -> None:
        super().__init__(opened.reader, database, clock, smtp)
        self.opened = opened
        self.gate = gate
        self.labels_as: LabelsAs = labels_as

    def view(self) -> View:
        return view_of(self.opened.beside.client)

    async def receive(self, subject: str, folder: str = "INBOX", flags: str = "") -> UUID:
        """A message in the mailbox and in the database."""
        return await self.store(self.opened.beside.put(self.written(subject), folder, flags), subject)

    def copy_to(self, *folders: str, subject: str) -> None:
        """Another program puts copies of the newest message of the inbox into these folders."""
        client = self.opened.beside.client
        client.select("INBOX")
        (uids,) = client.uid("SEARCH", "SUBJECT", f'"{subject}"')[1]
        for folder in folders:
            status, said = client.uid("COPY", uids.split()[-1].decode(), f'"{folder}"')
            assert status == "OK", said

    def restart(self) -> None:
        """Another process, which has not seen where the messages are."""
        self.reader = ImapMailbox(self.opened.account, self.gate, self.labels_as, [SNOOZED])


@asynccontextmanager
async def imap_actions(
    server: ImapServer,
    folder: Path,
    migrated: Path,
    profile: str = "all",
    labels_as: LabelsAs = "keywords",
    port: int | None = None,
) -> AsyncGenerator[ImapActions]:
    clock, database = ManualClock(), await new_sqlite(folder, migrated)
    gate = MailboxGate(database, clock)
    try:
        async with (
            submission_server() as smtp,
            opened_mailbox(server, profile, labels_as, gate, port, [SNOOZED]) as opened,
        ):
            yield ImapActions(opened, database, clock, gate, smtp, labels_as)
    finally:
        await database.close()
