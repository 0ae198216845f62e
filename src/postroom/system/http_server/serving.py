"""Serves an application on a listening socket with a connection guard, inside the caller's event loop."""

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import AsyncGenerator, Callable, Generator
from email.utils import formatdate

import uvicorn
from starlette.types import ASGIApp
from uvicorn.server import ServerState

from postroom.core.errors import SettingsError
from postroom.system.http_server.guard import ConnectionGuard
from postroom.system.http_server.limits import ConnectionLimits, within_open_files
from postroom.system.http_server.protocol import GuardedConfig, GuardedProtocol

GRACE_S = 5


@contextlib.asynccontextmanager
async def serving_on(
    listener: socket.socket,
    app: ASGIApp,
    *,
    limits: ConnectionLimits | None = None,
    before_stop: Callable[[], None] = lambda: None,
    on_refused: Callable[[str], None] = lambda _reason: None,
    what: str = "the dashboard",
    host: str | None = None,
    tls: ssl.SSLContext | None = None,
) -> AsyncGenerator[str]:
    """Serve until the block ends; yield the address, `http://host:port`, with the host as it was given. With `tls` it
    is `https`.

    `before_stop` ends long requests before the server waits for all requests. `on_refused` is called with the reason
    whenever the guard refuses a connection or a request.
    """
    place = _place(listener, host)
    guard = ConnectionGuard(within_open_files(limits or ConnectionLimits()), on_refused)
    server = _Server(app, guard, before_stop, tls)
    running = asyncio.create_task(server.serve(sockets=[listener]), name="postroom-http-server")
    ready = asyncio.create_task(server.ready.wait())
    try:
        await asyncio.wait({running, ready}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
            raise SettingsError(f"{what} could not be started on {place}; its log says why")
        yield f"{'http' if tls is None else 'https'}://{place}"
    finally:
        ready.cancel()
        server.stop()
        await running
        guard.close()
        listener.close()


def _place(listener: socket.socket, named: str | None) -> str:
    address, port = listener.getsockname()[:2]
    host = (named or address).strip("[]")
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class _State(ServerState):
    """uvicorn's state, with headers whose date is that of the answer."""

    def __init__(self, config: uvicorn.Config) -> None:
        self._config = config
        self._second = 0
        self._headers: list[tuple[bytes, bytes]] = []
        super().__init__()

    @property
    def default_headers(self) -> list[tuple[bytes, bytes]]:  # pyright: ignore[reportIncompatibleVariableOverride]
        second = int(time.time())
        if second != self._second:
            dated = [(b"date", formatdate(second, usegmt=True).encode())] if self._config.date_header else []
            self._second, self._headers = second, dated + self._config.encoded_headers
        return self._headers

    @default_headers.setter
    def default_headers(self, _given: list[tuple[bytes, bytes]]) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Nothing to keep: they are made when they are asked for."""


class _Server(uvicorn.Server):
    """A server that signals when it is ready, does not handle process signals, and ends long answers on shutdown."""

    def __init__(
        self, app: ASGIApp, guard: ConnectionGuard, before_stop: Callable[[], None], tls: ssl.SSLContext | None
    ) -> None:
        super().__init__(
            GuardedConfig(
                app,
                guard,
                GuardedProtocol,
                timeout_keep_alive=guard.limits.keep_alive_s,
                timeout_graceful_shutdown=GRACE_S,
            )
        )
        self.ready = asyncio.Event()
        self.server_state = _State(self.config)
        self._stopping = asyncio.Event()
        self._before_stop = before_stop
        self._tls = tls
        self._handshake_s = guard.limits.first_byte_s

    def stop(self) -> None:
        self.should_exit = True
        self._stopping.set()

    async def main_loop(self) -> None:
        """Wait for the end. uvicorn looks ten times a second, mostly to update the date that answers carry."""
        await self._stopping.wait()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self._tls is None:
            await super().startup(sockets)
        else:
            await self._start_encrypted(sockets or [], self._tls)
        self.ready.set()

    async def _start_encrypted(self, sockets: list[socket.socket], tls: ssl.SSLContext) -> None:
        """As uvicorn does, but with a short time for the handshake: until it is over, the guard knows of nothing."""
        await self.lifespan.startup()
        loop, config = asyncio.get_running_loop(), self.config

        def protocol() -> GuardedProtocol:
            return GuardedProtocol(config, self.server_state, self.lifespan.state)

        self.servers = [
            await loop.create_server(
                protocol, sock=each, ssl=tls, backlog=config.backlog, ssl_handshake_timeout=self._handshake_s
            )
            for each in sockets
        ]
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._before_stop()
        await super().shutdown(sockets)
