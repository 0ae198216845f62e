"""Clients that send too much, too slowly, or take no answer, over real sockets: each is ended, and others are served.

No test here is about speed: each waits until the server has acted, however long that takes.
"""

import asyncio
import contextlib
import resource
import socket
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field, replace

import pytest
from starlette.types import Message, Receive, Scope, Send

from postroom.system.http_server.guard import address_key
from postroom.system.http_server.limits import ConnectionLimits
from postroom.system.http_server.listening import open_listener
from postroom.system.http_server.serving import serving_on

PATIENT = ConnectionLimits(first_byte_s=600, headers_s=600, body_s=600, keep_alive_s=600, answer_s=600)
HELLO = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
ENOUGH_S = 120


@dataclass
class App:
    """Answers `/` with `ok`, `/large` with 8 MiB, `/stream` without end; `/wait` when told; reads every body."""

    served: Counter[str] = field(default_factory=Counter[str])
    left: asyncio.Event = field(default_factory=asyncio.Event)
    asked: asyncio.Queue[str] = field(default_factory=asyncio.Queue[str])
    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        self.asked.put_nowait(path)
        if path == "/stream":
            await self._stream(receive, send)
            return
        if path == "/wait":
            await self.go_on.wait()
        elif path != "/unread" and not await self._read(receive):
            self.left.set()
            return
        body = b"x" * 8 * 1024 * 1024 if path == "/large" else b"ok"
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
        await send({"type": "http.response.body", "body": body})
        self.served[path] += 1

    async def _read(self, receive: Receive) -> bool:
        message: Message = {"more_body": True}
        while message.get("more_body"):
            message = await receive()
            if message["type"] == "http.disconnect":
                return False
        return True

    async def _stream(self, receive: Receive, send: Send) -> None:
        async def gone() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            self.left.set()

        leaving = asyncio.create_task(gone())
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while not self.left.is_set():
            await send({"type": "http.response.body", "body": b"data: 1\n\n" * 1000, "more_body": True})
            await asyncio.sleep(0)
        await leaving


@dataclass
class Server:
    host: str
    port: int
    app: App
    refused: Counter[str]
    told: asyncio.Queue[str]
    clients: "list[Client]" = field(default_factory=list["Client"])

    async def connect(self) -> "Client":
        reader, writer = await asyncio.open_connection(self.host, self.port)
        self.clients.append(Client(reader, writer))
        return self.clients[-1]

    async def ask(self, data: bytes = HELLO) -> bytes:
        client = await self.connect()
        return await client.say(data.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))


@dataclass
class Client:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def write(self, data: bytes) -> None:
        self.writer.write(data)

    async def say(self, data: bytes) -> bytes:
        self.write(data)
        return await self.answer()

    async def answer(self) -> bytes:
        """Everything until the server ends the connection."""
        found = b""
        with contextlib.suppress(ConnectionError):
            while chunk := await self.reader.read(65536):
                found += chunk
        self.writer.close()
        return found


@contextlib.asynccontextmanager
async def served(limits: ConnectionLimits = PATIENT) -> AsyncGenerator[Server]:
    app, refused, told = App(), Counter[str](), asyncio.Queue[str]()

    def on_refused(reason: str) -> None:
        refused[reason] += 1
        told.put_nowait(reason)

    listener = open_listener("127.0.0.1", 0, allow_exposed=False)
    host, port = listener.getsockname()
    async with asyncio.timeout(ENOUGH_S), serving_on(listener, app, limits=limits, on_refused=on_refused):
        server = Server(host, port, app, refused, told)
        try:
            yield server
        finally:
            app.go_on.set()
            app.left.set()
            for client in server.clients:
                client.writer.close()


def status(answer: bytes) -> str:
    return answer.partition(b"\r\n")[0].decode()


def memory_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@pytest.mark.parametrize(
    "endless",
    [
        pytest.param(lambda: b"X-A: " + b"a" * 1000 + b"\r\n", id="many headers"),
        pytest.param(lambda: b"a" * 1007, id="one header"),
        pytest.param(lambda: b"X: y\r\n", id="small headers"),
    ],
)
async def test_endless_headers_are_refused_long_before_they_are_much(endless: Callable[[], bytes]) -> None:
    async with served() as server:
        client = await server.connect()
        client.write(b"GET / HTTP/1.1\r\nHost: x\r\nX-First: ")
        before, sent, piece = memory_mib(), 0, endless() * 64
        with contextlib.suppress(ConnectionError):
            while sent < 64 * 1024 * 1024 and not client.reader.at_eof():
                client.write(piece)
                await client.writer.drain()
                sent += len(piece)
        answer = await client.answer()
        assert answer == b"" or status(answer) == "HTTP/1.1 431 Request Header Fields Too Large"
        assert server.refused["headers_too_large"] == 1
        assert sent < 64 * 1024 * 1024
        assert memory_mib() - before < 64
        assert b"ok" in await server.ask()


async def test_headers_that_are_too_many_or_too_large_are_answered_431() -> None:
    async with served(replace(PATIENT, max_headers=10, max_header_bytes=1000)) as server:
        many = b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 11 + b"\r\n"
        large = b"GET / HTTP/1.1\r\nX: " + b"y" * 1000 + b"\r\n\r\n"
        for request in (many, large):
            client = await server.connect()
            assert status(await client.say(request)) == "HTTP/1.1 431 Request Header Fields Too Large"
        client = await server.connect()
        answer = await client.say(b"GET /" + b"y" * 1000 + b" HTTP/1.1\r\n\r\n")
        assert status(answer) == "HTTP/1.1 414 Request-URI Too Long"
        assert b"ok" in await server.ask(b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 9 + b"\r\n")


async def test_what_follows_a_body_is_held_to_the_limit_of_headers() -> None:
    start = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n"
    for tail in (b"0\r\nX-Trailer: " + b"a" * 400_000, b"0\r\n" + b"X: y\r\n" * 100_000, b"5;" + b"e" * 400_000):
        async with served() as server:
            client = await server.connect()
            client.write(start)
            answer = await client.say(tail)
            assert answer == b"" or status(answer).startswith("HTTP/1.1 431")
            assert server.refused["headers_too_large"] == 1


async def test_a_body_larger_than_any_door_takes_is_answered_413() -> None:
    async with served(replace(PATIENT, max_body_bytes=100_000)) as server:
        client = await server.connect()
        answer = await client.say(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100001\r\n\r\n" + b"a" * 100_001)
        assert status(answer) == "HTTP/1.1 413 Request Entity Too Large"
        await server.app.left.wait()


async def test_a_connection_that_says_nothing_is_closed() -> None:
    async with served(replace(PATIENT, first_byte_s=0.2)) as server:
        client = await server.connect()
        assert await client.answer() == b""
        assert server.refused["silent"] == 1


@pytest.mark.parametrize("begun", [b"G", b"GET / HTTP/1.1\r\nHost: x\r\n", b"\r\n", b"GET / HTTP/1.1\r\nX: "])
async def test_headers_that_never_end_are_answered_408(begun: bytes) -> None:
    async with served(replace(PATIENT, headers_s=0.2)) as server:
        client = await server.connect()
        assert status(await client.say(begun)) == "HTTP/1.1 408 Request Timeout"


async def test_a_byte_now_and_then_wins_no_time() -> None:
    async with served(replace(PATIENT, headers_s=0.5)) as server:
        client = await server.connect()
        client.write(b"GET / HTTP/1.1\r\nX: ")
        answering = asyncio.create_task(client.answer())
        while not answering.done():
            client.write(b"y")
            await asyncio.wait({answering}, timeout=0.02)
        assert answering.result() == b"" or status(answering.result()) == "HTTP/1.1 408 Request Timeout"
        assert server.refused["headers_too_late"] == 1


async def test_a_body_that_never_ends_is_answered_408_and_its_request_is_over() -> None:
    async with served(replace(PATIENT, body_s=0.2)) as server:
        client = await server.connect()
        answer = await client.say(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf")
        assert status(answer) == "HTTP/1.1 408 Request Timeout"
        await server.app.left.wait()


async def test_an_idle_connection_is_closed_and_an_answering_one_is_not() -> None:
    limits = ConnectionLimits(first_byte_s=0.1, headers_s=0.1, body_s=0.1, keep_alive_s=0.1, answer_s=0.1)
    async with served(limits) as server:
        idle, waiting = await server.connect(), await server.connect()
        waiting.write(b"GET /wait HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        while await server.app.asked.get() != "/wait":
            pass
        assert (await idle.say(HELLO)).endswith(b"ok")
        silent = await server.connect()
        assert await silent.answer() == b""  # its time was longer than any of the waiting one's
        server.app.go_on.set()
        assert (await waiting.answer()).endswith(b"ok")


@pytest.mark.parametrize("path", [b"/large", b"/stream"])
async def test_an_answer_that_nobody_takes_is_given_up(path: bytes) -> None:
    async with served(replace(PATIENT, answer_s=0.2)) as server:
        taken = socket.socket()
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        taken.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(taken, (server.host, server.port))
        await loop.sock_sendall(taken, b"GET " + path + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        while not server.refused["slow_reader"]:
            assert b"ok" in await server.ask()
        taken.close()


async def test_pipelined_requests_are_answered_in_order_up_to_a_number() -> None:
    async with served(replace(PATIENT, max_pipelined=4)) as server:
        client = await server.connect()
        answers = await client.say(HELLO * 4 + HELLO.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        assert answers.count(b"ok") == 5
        client = await server.connect()
        assert (await client.say(HELLO * 100)).count(b"ok") == 0
        assert server.refused["pipelined"] == 1


async def test_in_a_crowd_of_slow_clients_a_ready_one_is_served() -> None:
    """600 half-sent requests at once, far more than there are places: every ready client gets its answer."""
    async with served(replace(PATIENT, max_connections=64, max_per_address=64)) as server:
        crowd = [await server.connect() for _ in range(600)]
        for slow in crowd:
            slow.write(b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        for _ in range(50):
            assert b"ok" in await server.ask()
        assert server.refused["crowded"] >= 600 - 64


@pytest.mark.parametrize(
    "half",
    [
        b"",
        b"GET / HTTP/1.1\r\nX: ",
        b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nhalf",
        b"POST /unread HTTP/1.1\r\nContent-Length: 9\r\n\r\n",
    ],
)
async def test_no_kind_of_half_sent_request_holds_every_place(half: bytes) -> None:
    """Every place is taken by one kind; a ready client comes, others come after it, and it is served all the same."""
    async with served(replace(PATIENT, max_connections=16, max_per_address=16)) as server:
        for _ in range(16):
            (await server.connect()).write(half)
        if half.startswith(b"POST"):
            for _ in range(16):
                await server.app.asked.get()
        ready = await server.connect()
        for _ in range(8):
            (await server.connect()).write(b"GET / HTTP/1.1\r\nX: ")
        for _ in range(9):
            assert await server.told.get() == "crowded"
        assert (await ready.say(HELLO.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))).endswith(b"ok")


async def test_when_every_place_is_being_answered_a_new_client_is_told_to_come_back() -> None:
    async with served(replace(PATIENT, max_connections=4, max_per_address=3)) as server:
        waiting = [await server.connect() for _ in range(3)]
        for client in waiting:
            client.write(b"GET /wait HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            await server.app.asked.get()
        answer = await (await server.connect()).answer()
        assert status(answer) == "HTTP/1.1 429 Too Many Requests"
        assert b"retry-after: 5" in answer
        server.app.go_on.set()
        assert [(await client.answer())[-2:] for client in waiting] == [b"ok"] * 3
    async with served(replace(PATIENT, max_connections=3, max_per_address=4)) as server:
        for _ in range(3):
            (await server.connect()).write(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
            await server.app.asked.get()
        assert status(await (await server.connect()).answer()) == "HTTP/1.1 503 Service Unavailable"


async def test_an_early_answer_is_not_bought_with_an_endless_body() -> None:
    async with served() as server:
        client = await server.connect()
        client.write(b"POST /unread HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\n")
        sent = 0
        with contextlib.suppress(ConnectionError):
            while sent < 64 * 1024 * 1024:
                client.write(b"a" * 65536)
                await client.writer.drain()
                sent += 65536
        assert sent < 64 * 1024 * 1024
        client.writer.close()


@pytest.mark.parametrize(
    "request_line", [b"GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket", b"CONNECT x:1 HTTP/1.1"]
)
async def test_no_upgrade_leads_past_the_limits(request_line: bytes) -> None:
    async with served(replace(PATIENT, headers_s=0.2, keep_alive_s=0.2)) as server:
        client = await server.connect()
        client.write(request_line + b"\r\nHost: x\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            while not client.reader.at_eof() and server.refused.total() == 0:
                client.write(b"a" * 65536)
                await client.writer.drain()
                if client.reader.at_eof():
                    break
        await client.answer()
        assert b"ok" in await server.ask()


def test_an_address_counts_as_one_however_it_is_spelled() -> None:
    assert address_key(("192.0.2.1", 1)) == address_key(("::ffff:192.0.2.1", 2)) == "192.0.2.1"
    assert (
        address_key(("2001:db8::1", 1))
        == address_key(("2001:db8::ffff:2%eth0", 2))
        != address_key(("2001:db8:0:1::1", 1))
    )
    assert address_key(None) == ""
