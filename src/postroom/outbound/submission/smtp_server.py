"""The submission server: listens for senders, bounds how many connect and how much they keep in memory, ends the slow.

When there is no room for a new connection, the oldest one that has not logged in makes room: any number of silent
clients cannot keep out senders. Time in which the event loop was blocked counts for nobody.
"""

import asyncio
import contextlib
import socket
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import structlog

from postroom.core.metrics import SUBMISSION_CONNECTION
from postroom.core.tally import Tally
from postroom.outbound.submission.logins import in_time
from postroom.outbound.submission.smtp_connection import SmtpConnection
from postroom.outbound.submission.smtp_session import SmtpService, SmtpSession
from postroom.outbound.submission.submissions import PATIENCE_S
from postroom.store.engine.database import Database
from postroom.store.outbound.senders import SenderLogin, sender_by_login

log = structlog.get_logger()

CHECK_EVERY_S = 1.0
DRAIN_S = 10.0
KNOWN_FOR_S = 5.0


@dataclass(frozen=True, slots=True)
class SmtpConnectionLimits:
    """Connections in all and from one address, and the bytes of all messages that are being received."""

    connections: int = 512
    per_address: int = 128
    memory: int = 256 * 1024 * 1024


class Connections:
    """The open connections of the server."""

    def __init__(self, limits: SmtpConnectionLimits, tally: Tally | None = None) -> None:
        self._limits = limits
        self._tally = tally or Tally()
        self._open: set[SmtpConnection] = set()
        self._by_address: Counter[str] = Counter()
        self._memory = 0
        self._emptied = asyncio.Event()

    def admit(self, connection: SmtpConnection) -> bool:
        """Whether there is room for the connection. Otherwise it is turned away."""
        outcome = "opened"
        if self._by_address[connection.address] >= self._limits.per_address:
            outcome = "address_crowded"
        elif len(self._open) >= self._limits.connections and not self._make_room():
            outcome = "crowded"
        self.count(outcome)
        if outcome != "opened":
            connection.turn_away("421 4.7.0 There are too many connections; try again later")
            return False
        self._open.add(connection)
        self._by_address[connection.address] += 1
        return True

    def _make_room(self) -> bool:
        strangers = [each for each in self._open if each.is_stranger and not each.is_busy]
        if not strangers:
            return False
        oldest = min(strangers, key=lambda each: each.opened)
        self.left(oldest)
        oldest.turn_away("421 4.7.0 There are too many connections; try again later")
        return True

    def left(self, connection: SmtpConnection) -> None:
        if connection in self._open:
            self._open.discard(connection)
            self._by_address[connection.address] -= 1
            if not self._by_address[connection.address]:
                del self._by_address[connection.address]
        if not self._open:
            self._emptied.set()

    def take(self, size: int) -> bool:
        if self._memory + size > self._limits.memory:
            return False
        self._memory += size
        return True

    def release(self, size: int) -> None:
        self._memory -= size

    def count(self, outcome: str) -> None:
        self._tally.count(SUBMISSION_CONNECTION, outcome)

    async def check_forever(self, every_s: float = CHECK_EVERY_S) -> None:
        """End connections whose time is over."""
        loop, blocked_s = asyncio.get_running_loop(), 0.0
        while True:
            due = loop.time() + every_s
            await asyncio.sleep(every_s)
            late = loop.time() - due
            blocked_s += late if late > every_s else 0.0
            for each in tuple(self._open):
                each.check_deadline(loop.time() - blocked_s)

    async def stop(self, drain_s: float = DRAIN_S) -> None:
        """End all connections; those for which something is being done, after it."""
        self._emptied.clear()
        for each in tuple(self._open):
            each.stop()
        if self._open:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._emptied.wait(), drain_s)
        for each in tuple(self._open):
            each.turn_away("421 4.3.2 The server is stopping")


class Listener(NamedTuple):
    """A listening socket, and whether its connections are encrypted from their first byte."""

    socket: socket.socket
    implicit_tls: bool


@contextlib.asynccontextmanager
async def serving_submission(
    service: SmtpService, connections: Connections, listeners: list[Listener]
) -> AsyncGenerator[list[tuple[str, int]]]:
    """Accept connections during the block. Yields the addresses, in the order of the listeners."""
    loop = asyncio.get_running_loop()
    service = replace(service, room=connections)

    def factory(implicit: bool) -> Callable[[], SmtpSession]:
        return lambda: _AdmittedSession(service, connections, implicit=implicit)

    servers: list[asyncio.Server] = []
    for each in listeners:
        context, patience = (service.context, service.limits.login_s) if each.implicit_tls else (None, None)
        made = factory(each.implicit_tls)
        servers.append(await loop.create_server(made, sock=each.socket, ssl=context, ssl_handshake_timeout=patience))
    checking = asyncio.create_task(connections.check_forever(), name="postroom-submission")
    try:
        yield [each.socket.getsockname()[:2] for each in listeners]
    finally:
        for server in servers:
            server.close()
        await connections.stop()
        checking.cancel()


class _AdmittedSession(SmtpSession):
    """A session that begins once there is room for its connection."""

    def __init__(self, service: SmtpService, connections: Connections, *, implicit: bool) -> None:
        super().__init__(service, implicit=implicit)
        self._connections = connections

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self._connections.admit(self):
            self.begin()


def local_sender(
    database: Database, username: str, patience_s: float = PATIENCE_S
) -> Callable[[], Awaitable[SenderLogin | None]]:
    """The sender of local programs that do not log in, looked up every few seconds."""
    known: tuple[SenderLogin | None, float] = None, float("-inf")

    async def look_up() -> SenderLogin | None:
        nonlocal known
        now = asyncio.get_running_loop().time()
        if now - known[1] >= KNOWN_FOR_S:
            found = await in_time(database, sender_by_login(username), patience_s)
            if found is None:
                log.warning("submission.no_local_sender", username=username)
            known = found, now
        return known[0]

    return look_up
