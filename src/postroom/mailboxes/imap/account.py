"""The connection of one mailbox on which work is done: opened when needed, used by one task at a time, and closed when
nobody has needed it for a while.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from importlib.metadata import version

from postroom.mailboxes.imap.connection import CONNECT_S, Connection
from postroom.mailboxes.imap.errors import ImapError, NoConnectionLeft
from postroom.mailboxes.imap.session import ImapSession
from postroom.mailboxes.imap.sign_in import Credentials, sign_in
from postroom.mailboxes.imap.wire import Endpoint

KEPT_S = 60.0
"""How long a connection is kept that nobody uses."""

CredentialsProvider = Callable[[], Awaitable[Credentials]]
OpenSession = Callable[[], Awaitable[ImapSession]]
"""Opens another connection to the mailbox, signed in."""


async def open_session(
    endpoint: Endpoint, credentials: CredentialsProvider, context: ssl.SSLContext | None, limit_s: float = CONNECT_S
) -> ImapSession:
    """Connect and sign in."""
    connection = await Connection.connect(endpoint, context, limit_s)
    try:
        await sign_in(connection, await credentials())
        session = ImapSession(connection)
        await session.identify("Postroom", version("postroom"))
    except BaseException:
        connection.close()
        raise
    return session


class ImapConnectionLimits:
    """The connections of all accounts together, half of them for work, half to wait for news. So neither takes the
    other's, and a limit of 1 still lets work be done.
    """

    def __init__(self, most: int) -> None:
        self.for_work = asyncio.Semaphore(most - most // 2)
        self.waiting_left = most // 2


@dataclass
class WaitingConnection:
    """The connection of one mailbox on which it waits for news, one at a time. If none is left for it, the mailbox is
    looked at now and then instead.
    """

    limits: ImapConnectionLimits
    open_session: OpenSession
    _is_counted: bool = False

    async def open(self) -> ImapSession:
        """Open it, or open it anew after it was lost. Raises NoConnectionLeft."""
        if not self._is_counted:
            if self.limits.waiting_left < 1:
                raise NoConnectionLeft
            self.limits.waiting_left -= 1
            self._is_counted = True
        try:
            return await self.open_session()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give its place to another mailbox, once it is closed."""
        if self._is_counted:
            self.limits.waiting_left += 1
            self._is_counted = False


@dataclass
class ImapAccount:
    """How one mailbox is reached. `slots` bounds the open connections of all accounts together: while all are taken,
    none is kept that nobody uses.
    """

    open: OpenSession
    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1000))
    kept_s: float = KEPT_S
    _session: ImapSession | None = None
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _closing: asyncio.TimerHandle | None = None

    @contextlib.asynccontextmanager
    async def session(self) -> AsyncGenerator[ImapSession]:
        """The connection, for one task; opened if it is not, or not any more."""
        async with self._turn:
            if self._closing is not None:
                self._closing.cancel()
                self._closing = None
            try:
                yield await self._ready_session()
            finally:
                if self._session is not None and self.slots.locked():
                    # Others wait for a connection, or would have to.
                    self.close()
                elif self._session is not None:
                    self._closing = asyncio.get_running_loop().call_later(self.kept_s, self.close)

    async def _ready_session(self) -> ImapSession:
        if self._session is not None and self._session.connection.is_open:
            return self._session
        self.close()
        await self.slots.acquire()
        try:
            self._session = await self.open()
        except BaseException:
            self.slots.release()
            raise
        return self._session

    def close(self) -> None:
        """Close the connection; the next task opens another."""
        if self._closing is not None:
            self._closing.cancel()
            self._closing = None
        if self._session is not None:
            self._session.connection.close()
            self._session = None
            self.slots.release()

    async def log_out(self) -> None:
        """Close it politely."""
        async with self._turn:
            if self._session is not None and self._session.connection.is_open:
                with contextlib.suppress(ImapError):
                    await self._session.log_out()
            self.close()
