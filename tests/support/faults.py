"""Faults on demand: a runner that fails the N-th statement, and a network between us and PostgreSQL that breaks.

`FailingAt` is a database that fails before the N-th statement of a transaction, or after its last one and before the
commit. `Wire` stands between asyncpg and the server, reads both sides of the conversation message by message, and
cuts the connection where a test says so.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar
from urllib.parse import urlsplit, urlunsplit

from postroom.store.engine.database import Database, Dialect, Script, Single, Step, Subscription, Transaction

T = TypeVar("T")

_TLS_REQUEST = 80877103


class InjectedFault(Exception):
    """The fault that the test asked for."""


class FailingAt:
    """A database whose transactions fail before their n-th statement, counted from 1; the commit counts as the last.

    A transaction with fewer statements than that runs as ever. One that is a single statement commits with it: there
    is no moment between the two to fail in.
    """

    def __init__(self, database: Database, n: int) -> None:
        self._database = database
        self._n = n

    @property
    def dialect(self) -> Dialect:
        return self._database.dialect

    async def run(self, transaction: Transaction[T]) -> T:
        return await self._database.run(transaction._replace(begin=lambda: self._failing(transaction)))

    def subscribe(self, channel: str, callback: Callable[[str], None]) -> Subscription:
        return self._database.subscribe(channel, callback)

    async def close(self) -> None:
        await self._database.close()

    def _failing(self, transaction: Transaction[T]) -> Script[T]:
        script = transaction.begin()
        fault = InjectedFault(f"{transaction.name} fails at {self._n}")
        step: Step | None = None
        done = 0
        try:
            step = next(script)
            while True:
                if done + 1 == self._n:
                    raise fault
                rows = yield step
                done += 1
                step = script.send(rows)
        except StopIteration as end:
            if done + 1 == self._n and not isinstance(step, Single):
                raise fault from None
            return end.value
        finally:
            script.close()


class Cut(Enum):
    """Where the wire breaks, as seen from a message of the client."""

    BEFORE = "before the server gets it"
    AFTER = "after the server has answered it, before we hear of it"


@dataclass(slots=True)
class _Plan:
    phrase: bytes
    cut: Cut
    stay_away: bool = False


class Wire:
    """A loopback proxy to a PostgreSQL server that cuts connections at messages that contain a phrase.

    A cut before: the server never sees the message. A cut after: the message is passed on, the server's answer is
    awaited in full and thrown away. Each plan is carried out once, in order.
    """

    def __init__(self, url: str) -> None:
        self._target = urlsplit(url)
        self._plans: list[_Plan] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._is_away = False
        self._is_silent = False
        self.turned_away = asyncio.Event()
        self.cuts = 0

    def go_away(self) -> None:
        """End all connections, and every new one as soon as it is made, until the server is back."""
        self._is_away = True
        for task in self._tasks:
            task.cancel()

    def go_silent(self) -> None:
        """Answer nothing any more, on any connection, as a server that is stopped or behind a broken network."""
        self._is_silent = True

    def come_back(self) -> None:
        """Serve new connections again."""
        if self._is_silent:
            self.go_away()
        self._is_away = self._is_silent = False

    async def __aenter__(self) -> "Wire":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]
        user = self._target.username or ""
        return urlunsplit(self._target._replace(netloc=f"{user}@127.0.0.1:{port}"))

    def cut(self, phrase: str, where: Cut, *, stay_away: bool = False) -> None:
        """Plans a cut at the next message of the client, on any connection, that contains the phrase.

        With `stay_away`, the server is away from then on.
        """
        self._plans.append(_Plan(phrase.encode(), where, stay_away))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if self._is_away:
            self.turned_away.set()
            writer.transport.abort()
            return
        if self._is_silent:
            await asyncio.Event().wait()
        assert self._target.hostname is not None
        from_server, to_server = await asyncio.open_connection(self._target.hostname, self._target.port)
        to_server.write(await _greet(reader, writer))
        muted = asyncio.Event()
        answering = asyncio.create_task(self._pass_answers(from_server, writer, muted))
        asking = asyncio.create_task(self._pass_requests(reader, to_server, muted, answering))
        with contextlib.suppress(asyncio.CancelledError):  # the test is over
            await asyncio.wait({asking, answering}, return_when=asyncio.FIRST_COMPLETED)
        for side in (asking, answering):
            side.cancel()
        await asyncio.gather(asking, answering, return_exceptions=True)
        for end in (to_server, writer):
            end.transport.abort()

    async def _pass_requests(
        self,
        reader: asyncio.StreamReader,
        to_server: asyncio.StreamWriter,
        muted: asyncio.Event,
        answering: "asyncio.Task[None]",
    ) -> None:
        while True:
            message = await _message(reader)
            if self._is_silent:
                continue
            plan = self._plans[0] if self._plans and self._plans[0].phrase in message else None
            if plan is None:
                to_server.write(message)
                continue
            del self._plans[0]
            self.cuts += 1
            if plan.cut is Cut.AFTER:
                await _pass_until_executed(message, reader, to_server, muted)
                await answering
            self._is_away = self._is_away or plan.stay_away
            return

    async def _pass_answers(
        self, from_server: asyncio.StreamReader, writer: asyncio.StreamWriter, muted: asyncio.Event
    ) -> None:
        """Ends when the connection is muted and the server has said that it is ready for the next request."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                message = await _message(from_server)
                if not muted.is_set():
                    writer.write(message)
                    await writer.drain()
                elif message[:1] == b"Z":
                    return


async def _greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """The first message, which has no type byte. TLS, which asyncpg asks for before, this wire does not have."""
    while True:
        length = await reader.readexactly(4)
        body = await reader.readexactly(int.from_bytes(length, "big") - 4)
        if int.from_bytes(body[:4], "big") != _TLS_REQUEST:
            return length + body
        writer.write(b"N")


async def _message(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(5)
    return head + await reader.readexactly(int.from_bytes(head[1:], "big") - 4)


async def _pass_until_executed(
    message: bytes, reader: asyncio.StreamReader, to_server: asyncio.StreamWriter, muted: asyncio.Event
) -> None:
    """A simple query is one message. A prepared one is parsed first, with answers, and then executed and synced."""
    while message[:1] not in b"QE":
        to_server.write(message)
        message = await _message(reader)
    muted.set()
    to_server.write(message)
    while message[:1] not in b"QS":
        message = await _message(reader)
        to_server.write(message)
