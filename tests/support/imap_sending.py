"""The way out of a mailbox on a real IMAP server: a submission server of the sandbox, which answers as it is told."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from email.message import EmailMessage
from functools import cache
from queue import Queue
from threading import Thread
from uuid import UUID

from postroom.core.mail.carrier import MARK
from postroom.core.mail.gate import Gate
from postroom.mailboxes.imap.sending import ImapCarrier
from postroom.mailboxes.imap.sign_in import Credentials
from postroom.mailboxes.imap.submission import Submission
from postroom.mailboxes.imap.wire import Endpoint, Security
from postroom.outbound.smtp.options import Timeouts
from postroom_sandbox.smtp_server import EXTENSIONS, Answers, SmtpServer
from support.gates import BY_HAND
from support.imap_mailbox import OpenedMailbox, opened_mailbox
from support.imap_server import ImapServer, authority, trusting
from support.patience import PATIENCE_S

OWNER = "mara@lindqvist.example"
WITH_AUTH = (*EXTENSIONS, "AUTH PLAIN LOGIN XOAUTH2 OAUTHBEARER")


@cache
def server_context() -> ssl.SSLContext:
    """The certificate of the submission server, for localhost."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority().issue_cert("localhost", "127.0.0.1").configure_cert(context)
    return context


def submission_to(
    port: int,
    security: Security = "starttls",
    *,
    credentials: Credentials | None = None,
    files_copies: bool = False,
    timeouts: Timeouts | None = None,
) -> Submission:
    async def given() -> Credentials:
        return credentials or Credentials("mara", "secret")

    plain = Submission(Endpoint("127.0.0.1", port, security), given, trusting(), files_copies)
    return plain if timeouts is None else Submission(plain.endpoint, given, plain.context, files_copies, timeouts)


def submission_server(
    answers: Answers | None = None, extensions: Sequence[str] = WITH_AUTH, *, implicit: bool = False
) -> SmtpServer:
    return SmtpServer(answers or {}, extensions, tls=server_context(), implicit_tls=implicit)


def letter(mark: UUID, to: str = "ada@example.com", text: str = "It is in.", **headers: str) -> bytes:
    """A mail as the product builds it, without a Message-ID."""
    message = EmailMessage()
    message["From"], message["To"], message["Subject"], message[MARK] = OWNER, to, "The harvest", str(mark)
    for name, value in headers.items():
        message[name.replace("_", "-")] = value
    message.set_content(text)
    return message.as_bytes().replace(b"\n", b"\r\n")


@dataclass
class SendingMailbox:
    opened: OpenedMailbox
    smtp: SmtpServer
    carrier: ImapCarrier

    def carrier_by(self, submission: Submission, grace_s: float = 30.0) -> ImapCarrier:
        """Another way out of the same mailbox."""
        return ImapCarrier(self.opened.reader.under(BY_HAND), submission, OWNER, at_once, grace_s)


async def at_once(seconds: float) -> None:
    """Waits for copies that never come take no time here."""
    del seconds


@asynccontextmanager
async def sending_mailbox(
    server: ImapServer,
    profile: str = "all",
    answers: Answers | None = None,
    *,
    gate: Gate | None = None,
    address: str = OWNER,
    port: int | None = None,
    files_copies: bool = False,
    sleep: Callable[[float], Awaitable[None]] = at_once,
) -> AsyncGenerator[SendingMailbox]:
    async with (
        submission_server(answers) as smtp,
        opened_mailbox(server, profile, gate=gate, port=port) as opened,
    ):
        submission = submission_to(smtp.port, files_copies=files_copies)
        yield SendingMailbox(opened, smtp, ImapCarrier(opened.mailbox, submission, address, sleep))


@contextmanager
def submission_in_a_thread() -> Generator[SmtpServer]:
    """A submission server with a loop of its own, for tests that run commands."""
    started: Queue[tuple[SmtpServer, Callable[[], object]]] = Queue()

    async def serve() -> None:
        ended, loop = asyncio.Event(), asyncio.get_running_loop()
        async with submission_server() as smtp:
            started.put((smtp, lambda: loop.call_soon_threadsafe(ended.set)))
            await ended.wait()

    thread = Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    smtp, end = started.get(timeout=PATIENCE_S)
    try:
        yield smtp
    finally:
        end()
        thread.join()
