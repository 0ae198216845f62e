"""The HTTP client whose requests are checked right before each write: over TCP and TLS, on both event loops."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
import trustme
import uvloop

from postroom.core.mail.gate import ClearanceExpired
from postroom.system.checked_http import CheckedClient, checked_before_each_write

LARGE = 3_000_000
Loop = Callable[[], asyncio.AbstractEventLoop]


class Server:
    """Answers each request with as many bytes as its path asks for, and keeps what has come."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self.connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                lengths = [line[15:] for line in head.lower().splitlines() if line[:15] == b"content-length:"]
                length = int(lengths[0]) if lengths else 0
                self.requests.append(head + await reader.readexactly(length))
                size = int(head.split(b" ")[1][1:])
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # a request that was cut off, or the end
        finally:
            writer.close()


@asynccontextmanager
async def serving(is_tls: bool) -> AsyncGenerator[tuple[Server, str, CheckedClient]]:
    server, context, trusting = Server(), None, ssl.create_default_context()
    if is_tls:
        authority = trustme.CA()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("localhost").configure_cert(context)
        authority.configure_trust(trusting)
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=context)
    port = listener.sockets[0].getsockname()[1]
    async with listener, CheckedClient(verify=trusting, trust_env=False, timeout=60) as http:
        yield server, f"{'https' if is_tls else 'http'}://localhost:{port}", http


def run_on(loop: Loop, main: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(main)


on_both_loops = pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
on_both_ways = pytest.mark.parametrize("is_tls", [False, True])


@on_both_loops
@on_both_ways
def test_large_requests_and_answers_go_through_and_connections_are_used_again(loop: Loop, is_tls: bool) -> None:
    async def main() -> None:
        async with serving(is_tls) as (server, url, http):
            for _ in range(3):
                answer = await http.post(f"{url}/{LARGE}", content=b"~" * LARGE)
                assert len(answer.content) == LARGE
            assert [request.count(b"~") for request in server.requests] == [LARGE] * 3
            assert server.connections == 1

    run_on(loop, main())


@on_both_loops
@on_both_ways
def test_what_the_check_forbids_is_not_written(loop: Loop, is_tls: bool) -> None:
    def never() -> None:
        raise ClearanceExpired

    async def main() -> None:
        async with serving(is_tls) as (server, url, http):
            with pytest.raises(ClearanceExpired), checked_before_each_write(never):
                await http.post(f"{url}/1", content=b"never")
            assert server.requests == []
            assert (await http.post(f"{url}/1", content=b"allowed")).status_code == 200
            assert len(server.requests) == 1

    run_on(loop, main())


@on_both_loops
@on_both_ways
def test_a_request_is_cut_off_between_its_head_and_its_body(loop: Loop, is_tls: bool) -> None:
    left = [None]

    def once() -> None:
        if not left:
            raise ClearanceExpired
        left.pop()

    async def main() -> None:
        async with serving(is_tls) as (server, url, http):
            with pytest.raises(ClearanceExpired), checked_before_each_write(once):
                await http.post(f"{url}/1", content=b"never")
            await http.get(f"{url}/1")
            assert [request[:3] for request in server.requests] == [b"GET"]

    run_on(loop, main())


@on_both_loops
def test_a_connection_that_the_server_has_closed_is_not_used_again(loop: Loop) -> None:
    async def main() -> None:
        async with CheckedClient(trust_env=False, timeout=60) as http:
            closed = asyncio.Event()

            async def serve_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")
                writer.close()
                closed.set()

            listener = await asyncio.start_server(serve_once, "127.0.0.1", 0)
            async with listener:
                address = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
                for _ in range(3):
                    closed.clear()
                    assert (await http.get(f"{address}/1")).status_code == 200
                    await closed.wait()

    run_on(loop, main())


@on_both_loops
def test_nobody_there_is_a_connect_error(loop: Loop) -> None:
    async def main() -> None:
        async with CheckedClient(trust_env=False, timeout=60) as http:
            with pytest.raises(httpx2.ConnectError):
                await http.get("http://127.0.0.1:9/")

    run_on(loop, main())
