"""A submission server of the test's own, and a client that sends exactly the bytes it is told to."""

import asyncio
import base64
import contextlib
import ssl
from collections.abc import AsyncGenerator, Callable
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

import trustme

from postroom.compose.submission import listeners_of
from postroom.core.sign_in.throttle import SignInLimits
from postroom.core.tally import Tally
from postroom.outbound.submission.logins import Logins
from postroom.outbound.submission.smtp_connection import SmtpSessionLimits
from postroom.outbound.submission.smtp_server import Connections, SmtpConnectionLimits, local_sender, serving_submission
from postroom.outbound.submission.smtp_session import SmtpService
from postroom.outbound.submission.submissions import (
    PATIENCE_S as USUAL_PATIENCE_S,
)
from postroom.outbound.submission.submissions import (
    SubmissionLimits,
    SubmissionOptions,
    Submissions,
)
from postroom.settings.submission import SubmissionSettings
from postroom.store.engine.database import Database
from postroom.store.outbound import outbound, senders
from postroom.store.outbound.outbound import RecipientView
from postroom.store.outbound.senders import NewSender, SenderView
from postroom.store.outbound.submissions import SubmissionView, load_submission
from postroom.system.wall_clock import Clock, wall_clock
from postroom.vault.passwords import hash_password
from support.patience import PATIENCE_S
from support.store.fault_cases_registry import signed

ADA = "ada@example.com"
PASSWORD = "correct horse battery"
HOST = "mail.example"
DATES = "Date: Sun, 15 Nov 2026 08:00:00 +0000\r\nMessage-ID: <1@example.com>\r\n"
MESSAGE = f"From: Ada <{ADA}>\r\nTo: bob@example.net\r\n{DATES}Subject: Hello\r\n\r\nHello.\r\n".encode()


@cache
def password_hash() -> str:
    """Hashing takes long on purpose: once is enough."""
    return hash_password(PASSWORD)


@cache
def authority() -> trustme.CA:
    return trustme.CA()


@cache
def server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority().issue_cert(HOST).configure_cert(context)
    return context


def client_context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority().configure_trust(context)
    return context


async def added_sender(database: Database, username: str = ADA, clock: Clock = wall_clock, **more: Any) -> SenderView:
    domain = username.rpartition("@")[2]
    new = NewSender(username, domain, (f"*@{domain}",), password_hash=password_hash(), **more)
    return await database.run(senders.add_sender(new, signed(), clock()))


class Running(NamedTuple):
    """A server, and where it listens: the port for STARTTLS, and the encrypted one."""

    database: Database
    submissions: Submissions
    tally: Tally
    port: int
    tls_port: int

    async def content(self, id: str) -> bytes:
        return await self.database.run(outbound.load_content(UUID(id)))

    async def shown(self, sender: SenderView, id: str) -> SubmissionView:
        return await self.database.run(load_submission(sender.id, UUID(id)))

    async def recipients(self, sender: SenderView, id: str) -> tuple[RecipientView, ...]:
        return (await self.shown(sender, id)).recipients


@contextlib.asynccontextmanager
async def submission_server(
    database: Database,
    *,
    limits: SubmissionLimits | None = None,
    session: SmtpSessionLimits | None = None,
    connections: SmtpConnectionLimits | None = None,
    logins: SignInLimits | None = None,
    monotonic: Callable[[], float] | None = None,
    check_room: Callable[[], None] = lambda: None,
    clock: Clock = wall_clock,
    plain: bool = True,
    tls: bool = True,
    local: str | None = None,
    context: ssl.SSLContext | None = None,
    patience_s: float = USUAL_PATIENCE_S,
    store_patience_s: float | None = None,
    **options: Any,
) -> AsyncGenerator[Running]:
    """`plain`: logins without TLS are allowed, as the settings may allow them to local programs."""
    tally = Tally()
    limits = limits or SubmissionLimits()
    submissions = Submissions(
        database,
        SubmissionOptions(
            HOST, limits, patience_s=patience_s if store_patience_s is None else store_patience_s, **options
        ),
        check_room=check_room,
        tally=tally,
        clock=clock,
    )
    room = Connections(connections or SmtpConnectionLimits(), tally)
    measured = {} if monotonic is None else {"monotonic": monotonic}
    checked = Logins(database, logins, tally=tally, patience_s=patience_s, **measured)
    context = (context or server_context()) if tls else None
    service = SmtpService(
        submissions,
        checked,
        session or SmtpSessionLimits(size=limits.size),
        room,
        context,
        plain,
        None if local is None else local_sender(database, local, patience_s),
    )
    listeners = listeners_of(SubmissionSettings.model_validate({"port": 0, "tls_port": 0}), context)
    try:
        async with serving_submission(service, room, listeners) as found:
            ports = [port for _, port in found]
            yield Running(database, submissions, tally, ports[0], ports[-1])
    finally:
        checked.close()


class RawClient:
    """Sends bytes as they are, and reads whole replies."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes | str) -> None:
        self._writer.write(data.encode() if isinstance(data, str) else data)
        await self._writer.drain()

    async def reply(self) -> str:
        """The next reply with all its lines; empty when the server has closed the connection."""
        lines: list[str] = []
        async with asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    line = (await self._reader.readline()).decode()
                except ConnectionError:
                    line = ""
                lines.append(line.rstrip("\r\n"))
                if line[3:4] != "-":
                    return "\n".join(lines)

    async def ask(self, *commands: str) -> str:
        """Send commands together, each as a line; the reply to the last of them."""
        await self.send("".join(f"{command}\r\n" for command in commands))
        return [await self.reply() for _ in commands][-1]

    async def log_in(self, username: str = ADA, password: str = PASSWORD) -> str:
        secret = base64.b64encode(f"\0{username}\0{password}".encode()).decode()
        return await self.ask(f"AUTH PLAIN {secret}")

    async def begin(self, *recipients: str) -> str:
        """Log in and go on up to the reply to DATA."""
        assert (await self.ask("EHLO client.example")).startswith("250")
        assert (await self.log_in()).startswith("235")
        return await self.envelope(*recipients)

    async def envelope(self, *recipients: str) -> str:
        to = recipients or ("bob@example.net",)
        return await self.ask(f"MAIL FROM:<{ADA}>", *(f"RCPT TO:<{each}>" for each in to), "DATA")

    async def deliver(self, message: bytes = MESSAGE) -> str:
        """Send the content and return the reply."""
        await self.send(stuffed(message))
        return await self.reply()

    async def encrypt(self) -> None:
        assert (await self.ask("STARTTLS")).startswith("220")
        await self._writer.start_tls(client_context(), server_hostname=HOST)

    async def closed(self) -> bool:
        """Whether the server closes the connection."""
        async with asyncio.timeout(PATIENCE_S):
            with contextlib.suppress(ConnectionError):
                return await self._reader.read() == b""
        return True


def stuffed(message: bytes) -> bytes:
    content = message.replace(b"\r\n.", b"\r\n..")
    return (b"." if content.startswith(b".") else b"") + content + b".\r\n"


def queued_as(reply: str) -> str:
    """The id in the reply of a mail that was accepted."""
    assert reply.startswith("250 2.0.0 Ok: queued as "), reply
    return reply.rpartition(" ")[2]


@contextlib.asynccontextmanager
async def connected(port: int, *, tls: bool = False) -> AsyncGenerator[RawClient]:
    more: dict[str, Any] = {"ssl": client_context(), "server_hostname": HOST} if tls else {}
    reader, writer = await asyncio.open_connection("127.0.0.1", port, **more)
    client = RawClient(reader, writer)
    try:
        assert (await client.reply()).startswith("220")
        yield client
    finally:
        writer.close()
        with contextlib.suppress(OSError, ssl.SSLError):
            await writer.wait_closed()
