"""SIGKILL at every step of sending a mail from an IMAP mailbox: it goes out once, or a person is asked.

In doubt is only what dies between the mark on the draft and the mark that the server has taken it; and of that, nothing
that the server itself has filed.
"""

import json
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from uuid import UUID

import pytest

from postroom.core.mail.carrier import MARK
from postroom.core.submission.envelope import Recipient
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import open_database
from postroom.store.mail.mail import keep_account
from postroom.store.outbound import outbound
from postroom.store.outbound.outbound import MailSender, NewMail
from postroom.system.wall_clock import wall_clock
from postroom_sandbox.smtp_server import ReceivedMail, SmtpServer
from support.crash.action_steps import Step
from support.crash.evidence import Place
from support.imap_mailbox import Beside
from support.imap_sending import OWNER, WITH_AUTH, letter
from support.imap_server import ImapServer
from support.processes import ProcessGroup
from support.scale import SOAK
from support.smtp_sending import queue_mail

PROCESS = "support.crash.imap_sends_process"
KILLED = -9
LEASE_MINUTES = 2


class Filed(list[ReceivedMail]):
    """What the server has taken; it files a copy of each, if it has where."""

    def __init__(self, beside: Beside | None) -> None:
        super().__init__()
        self._beside = beside

    def append(self, mail: ReceivedMail) -> None:
        super().append(mail)
        if self._beside is not None:
            self._beside.put(mail.content, "Sent", "\\Seen")


@dataclass
class Sends:
    """One mailbox, one database, one submission server, and one process after the other."""

    place: Place
    database: Database
    server: ImapServer
    user: str
    beside: Beside
    smtp: SmtpServer
    processes: ProcessGroup
    account_id: UUID
    files: bool
    """Whether the submission server files copies, a moment after its answer."""
    started: int = 0
    ends: Counter[str] = field(default_factory=Counter[str])

    async def queued(self) -> UUID:
        id = new_id()
        new = NewMail(
            id,
            self.account_id,
            None,
            MailSender.of_mailbox(OWNER),
            "forward",
            (Recipient("ada@example.com"),),
            "The harvest",
            letter(id),
        )
        await self.database.run(queue_mail([new], wall_clock()))
        return id

    async def live(self, mail: UUID, step: Step | None = None) -> dict[str, int] | None:
        """A process until the mail is settled, which returns its steps; or until it dies at the step."""
        self.started += 1
        words = ["--imap", str(self.server.port), "--user", self.user, "--smtp", str(self.smtp.port)]
        words += ["--mail", str(mail), "--minutes", str(LEASE_MINUTES * self.started)]
        words += ["--files"] if self.files else []
        words += [] if step is None else ["--die", str(step)]
        child = await self.processes.start(PROCESS, "--data-dir", str(self.place.folder), *words)
        code = await child.ended()
        if code == KILLED:
            assert child.announced("dies"), child.complaints()
            return None
        assert code == 0, child.complaints()
        return json.loads(child.announced("passed")[0].details)

    def marks(self, folder: str) -> Counter[str]:
        """Our mails in the folder, as a mail program shows it."""
        self.beside.client.select(folder, readonly=True)
        _, found = self.beside.client.uid("SEARCH", "UNDELETED")
        uids = found[0].decode().split()
        if not uids:
            return Counter()
        _, heads = self.beside.client.uid("FETCH", ",".join(uids), f"(BODY.PEEK[HEADER.FIELDS ({MARK})])")
        return Counter(each[1].decode().partition(":")[2].strip() for each in heads if isinstance(each, tuple))

    def taken(self, mail: UUID) -> int:
        return sum(str(mail).encode() in each.content.partition(b"\r\n\r\n")[0] for each in self.smtp.received)

    async def check(self, mail: UUID, step: Step) -> None:
        """It went out once and is filed once; or nobody can tell, it went out at most once, and the draft is there."""
        view = await self.database.run(outbound.load_mail(mail))
        drafts, sent = self.marks("Drafts")[str(mail)], self.marks("Sent")[str(mail)]
        told = f"killed at {step}: {view.state}, {self.taken(mail)} taken, {drafts} drafts, {sent} filed: {view.error}"
        self.ends[view.state] += 1
        match view.state:
            case "sent":
                assert (self.taken(mail), drafts, sent) == (1, 0, 1), told
            case "unknown":
                assert (self.taken(mail), drafts, sent) in ((0, 1, 0), (1, 1, 0)), told
                assert not (self.files and self.taken(mail)), told
                assert "postroom outbound resolve" in (view.error or ""), told
            case _:
                raise AssertionError(told)


@asynccontextmanager
async def sends_on(server: ImapServer, place: Place, processes: ProcessGroup, files: bool) -> AsyncGenerator[Sends]:
    user, database = server.new_user(), await open_database(place.folder)
    beside = Beside(server, user)
    try:
        account = await database.run(keep_account(new_id(), "imap", f"imap:{OWNER}", OWNER, wall_clock()))
        async with SmtpServer({}, WITH_AUTH) as smtp:
            smtp.received = Filed(beside if files else None)
            yield Sends(place, database, server, user, beside, smtp, processes, account.id, files)
    finally:
        beside.close()
        await database.close()


WAYS = [("dovecot", False), ("dovecot", True), *([("cyrus", False)] if SOAK else [])]


@pytest.mark.parametrize(("server", "files"), WAYS, ids=[f"{each[0]}{' files copies' * each[1]}" for each in WAYS])
async def test_a_sender_killed_at_any_step_sends_once_or_asks(
    request: pytest.FixtureRequest, tmp_path: Path, children: ProcessGroup, rng: Random, server: str, files: bool
) -> None:
    running: ImapServer = request.getfixturevalue(server)
    async with sends_on(running, Place(tmp_path), children, files) as sends:
        steps = await sends.live(await sends.queued())
        assert steps is not None
        every = [Step(what, hit) for what, times in steps.items() for hit in range(1, times + 1)]
        told = {"SMTP content before", "SMTP content answered", "IMAP APPEND before", "deliver before commit"}
        assert told <= steps.keys()
        chosen = every if SOAK else [*rng.sample(every, 3), Step("SMTP content answered", 1)]
        deaths = 0
        for step in chosen:
            mail = await sends.queued()
            deaths += await sends.live(mail, step) is None
            await sends.live(mail)
            await sends.check(mail, step)
        # How often it looks for a copy is a matter of time: not every step comes again.
        assert deaths >= (len(chosen) // 2 if SOAK else 1)
    print(f"{len(every)} steps, {len(chosen)} struck, {deaths} deaths: {dict(sends.ends)}")
