"""Serves the emulator and other stand-ins on a loopback address, inside the running process."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from postroom_sandbox.connection import TRANSPORT
from postroom_sandbox.emulator import Emulator

LOOPBACK = "127.0.0.1"
# How long to wait for running requests when the server stops.
GRACE_S = 1.0
# As long as Google's. Clients close idle connections after 5 s; if the server did so too, requests would meet its end.
KEEP_ALIVE_S = 240


class LoopbackServer(uvicorn.Server):
    """A server that signals when it is ready, stops on request, and does not handle process signals."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        self.should_exit = True
        self._stopping.set()

    async def main_loop(self) -> None:
        """Stop at once; uvicorn itself only checks periodically."""
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await self._stopping.wait()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Shut down as uvicorn does, but without its pauses, which would slow down hundreds of tests."""
        for server in self.servers:
            server.close()
        for each in sockets or []:
            each.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE_S):
                while self.server_state.connections or self.server_state.tasks:  # noqa: ASYNC110 - uvicorn has no event
                    await asyncio.sleep(0.002)
        for task in self.server_state.tasks:
            task.cancel()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


class _OpenProtocol(HttpToolsProtocol):
    """Gives the application access to the connection, so that it can break it."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {TRANSPORT: cast("dict[object, object]", self.transport)}


@asynccontextmanager
async def running_emulator(emulator: Emulator, port: int = 0) -> AsyncGenerator[str]:
    """Serve the emulator; yield the base URL. Port 0 takes any free one. Raises OSError if the port is taken."""
    async with running(emulator.app(), port) as url:
        pushing = asyncio.create_task(emulator.pubsub.push_forever())
        try:
            yield url
        finally:
            pushing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await pushing


@asynccontextmanager
async def running(app: ASGIApp, port: int = 0) -> AsyncGenerator[str]:
    """Serve the application; yield the base URL."""
    with listening(port) as listener:
        server = LoopbackServer(_config(app))
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        ready = asyncio.create_task(server.ready.wait())
        try:
            await asyncio.wait({serving, ready}, return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                await serving
            yield f"http://{LOOPBACK}:{listener.getsockname()[1]}"
        finally:
            ready.cancel()
            server.stop()
            await serving


def _config(app: ASGIApp) -> uvicorn.Config:
    """The configuration. The server adds no Date header, since the emulator uses its own clock."""
    return uvicorn.Config(
        app,
        http=_OpenProtocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        date_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        lifespan="off",
    )


def listening(port: int) -> socket.socket:
    """Open a socket, naming the protocol: else asyncio leaves Nagle's algorithm on, which costs 40 ms per answer."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((LOOPBACK, port))
    except OSError:
        listener.close()
        raise
    return listener
