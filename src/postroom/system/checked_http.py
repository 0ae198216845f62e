"""An HTTP client whose requests are checked at the moment when their bytes are written.

Between the start of a request and its first byte it may wait for a connection, open one, and wait for the event loop. A
process may be stopped, or a laptop closed, at any of these points. So the last check is in the network stream itself:
between it and the system call that writes there is no `await` and no queue. What remains is the time between two
instructions, which no TCP sender can avoid.
"""

import asyncio
import contextlib
import select
import ssl
from collections.abc import Callable, Generator, Iterable
from contextvars import ContextVar
from typing import Any

import httpcore2
import httpx2

Check = Callable[[], None]
SocketOption = tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]

_check: ContextVar[Check | None] = ContextVar("check_before_write", default=None)


@contextlib.contextmanager
def checked_before_each_write(check: Check | None) -> Generator[None]:
    """Check requests of this task right before each write; an exception of the check ends the request."""
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)


class CheckedClient(httpx2.AsyncClient):
    """The HTTP client with checked streams for every connection, including proxies."""

    def _init_transport(self, *args: Any, **options: Any) -> httpx2.AsyncBaseTransport:
        return _with_checked_streams(super()._init_transport(*args, **options))

    def _init_proxy_transport(self, *args: Any, **options: Any) -> httpx2.AsyncBaseTransport:
        return _with_checked_streams(super()._init_proxy_transport(*args, **options))


def _with_checked_streams(transport: httpx2.AsyncBaseTransport) -> httpx2.AsyncBaseTransport:
    # The pool accepts a backend as a public argument, but the transport does not pass one on.
    pool: Any = getattr(transport, "_pool", None)
    if pool is not None:
        pool._network_backend = CheckedBackend()
    return transport


class CheckedBackend(httpcore2.AsyncNetworkBackend):
    """Connections of the event loop itself, without another layer."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[SocketOption] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        loop = asyncio.get_running_loop()
        local = None if local_address is None else (local_address, 0)
        with _mapped_errors(httpcore2.ConnectTimeout, httpcore2.ConnectError):
            async with asyncio.timeout(timeout):
                transport, protocol = await loop.create_connection(
                    lambda: _Protocol(asyncio.StreamReader(loop=loop), loop=loop), host, port, local_addr=local
                )
        for option in socket_options or ():
            transport.get_extra_info("socket").setsockopt(*option)
        return _Stream(transport, protocol)

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[SocketOption] | None = None
    ) -> httpcore2.AsyncNetworkStream:
        raise httpcore2.UnsupportedProtocol("no server is reached by a socket file")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _Protocol(asyncio.StreamReaderProtocol):
    """Keeps a reference to its reader."""

    def __init__(self, reader: asyncio.StreamReader, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(reader, loop=loop)
        self.reader = reader


class _Stream(httpcore2.AsyncNetworkStream):
    def __init__(self, transport: asyncio.Transport, protocol: _Protocol, below: "_Stream | None" = None) -> None:
        if below is None:
            # Without a buffer a write is the system call itself, also in uvloop, which otherwise writes at the end of
            # its iteration. TLS passes on its data at once; for it, a buffer of size zero would always seem full.
            transport.set_write_buffer_limits(0)
        self._transport = transport
        # The writer of the stream below TLS closes the connection when nothing refers to it any more.
        self._below = below
        self._reader = protocol.reader
        self._writer = asyncio.StreamWriter(transport, protocol, protocol.reader, asyncio.get_running_loop())

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        with _mapped_errors(httpcore2.ReadTimeout, httpcore2.ReadError):
            async with asyncio.timeout(timeout):
                return await self._reader.read(max_bytes)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if not buffer:
            return
        with _mapped_errors(httpcore2.WriteTimeout, httpcore2.WriteError):
            async with asyncio.timeout(timeout):
                # What an earlier write has left goes first, so that this one is written at once.
                await self._writer.drain()
                if (check := _check.get()) is not None:
                    check()
                self._writer.write(buffer)
                await self._writer.drain()

    async def aclose(self) -> None:
        self._writer.close()
        with contextlib.suppress(OSError, ssl.SSLError):
            await self._writer.wait_closed()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        loop = asyncio.get_running_loop()
        protocol = _Protocol(asyncio.StreamReader(loop=loop), loop=loop)
        with _mapped_errors(httpcore2.ConnectTimeout, httpcore2.ConnectError):
            try:
                async with asyncio.timeout(timeout):
                    transport = await loop.start_tls(
                        self._transport, protocol, ssl_context, server_hostname=server_hostname
                    )
            except BaseException:
                self._transport.abort()
                raise
        if transport is None:
            raise httpcore2.ConnectError("the connection was closed during the handshake")
        protocol.connection_made(transport)
        return _Stream(transport, protocol, self)

    def get_extra_info(self, info: str) -> Any:
        match info:
            case "ssl_object":
                return self._transport.get_extra_info("ssl_object")
            case "client_addr":
                return self._transport.get_extra_info("sockname")
            case "server_addr":
                return self._transport.get_extra_info("peername")
            case "socket":
                return self._transport.get_extra_info("socket")
            case "is_readable":
                return self._is_readable()
            case _:
                return None

    def _is_readable(self) -> bool:
        """Whether the other side has closed an idle connection, or sent something unexpected."""
        if self._reader.at_eof() or self._transport.is_closing():
            return True
        socket = self._transport.get_extra_info("socket")
        if socket is None or socket.fileno() < 0:
            return True
        poll = select.poll()
        poll.register(socket.fileno(), select.POLLIN)
        return bool(poll.poll(0))


@contextlib.contextmanager
def _mapped_errors(timed_out: type[Exception], failed: type[Exception]) -> Generator[None]:
    try:
        yield
    except TimeoutError as error:
        raise timed_out(str(error)) from error
    except OSError as error:
        raise failed(str(error)) from error
