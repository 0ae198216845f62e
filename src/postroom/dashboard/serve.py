"""Serves the dashboard on a socket of this machine, inside an event loop that others run and stop."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, Callable, Generator

import uvicorn
from fastapi import FastAPI

from postroom.core.errors import SettingsError
from postroom.dashboard.broadcast import Broadcast

GRACE_S = 5


@contextlib.asynccontextmanager
async def serving(
    app: FastAPI, *, host: str, port: int, before_stop: Callable[[], None] = lambda: None
) -> AsyncGenerator[str]:
    """Serve until the block ends; yields the address. Port 0 takes a free one.

    `before_stop` ends what would keep a request open, before the server waits for its requests.
    """
    listener = _listen(host, port)
    name = f"[{host}]" if ":" in host else host
    server = _Server(app, before_stop)
    running = asyncio.create_task(server.serve(sockets=[listener]), name="dashboard-server")
    ready = asyncio.create_task(server.ready.wait())
    try:
        await asyncio.wait({running, ready}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
            raise SettingsError(f"the dashboard could not be started on {name}:{port}; its log says why")
        yield f"http://{name}:{listener.getsockname()[1]}"
    finally:
        ready.cancel()
        server.should_exit = True
        await running
        listener.close()


class _Server(uvicorn.Server):
    """A server that says when it is ready, leaves signals to its owner, and ends event streams before it waits."""

    def __init__(self, app: FastAPI, before_stop: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                lifespan="off",
                timeout_graceful_shutdown=GRACE_S,
            )
        )
        self.ready = asyncio.Event()
        self._broadcast: Broadcast = app.state.broadcast
        self._before_stop = before_stop

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._broadcast.close()
        self._before_stop()
        await super().shutdown(sockets)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise SettingsError(
            f"the dashboard cannot listen on {host}:{port} ({error.strerror}); choose a free port, or 0 for any"
        ) from error
    # Small answers go out at once, also where the event loop does not see to it.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener
