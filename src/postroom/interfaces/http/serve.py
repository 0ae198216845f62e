"""Serve the HTTP application on a socket of this machine."""

import contextlib
import ssl
from collections.abc import AsyncGenerator, Callable, Sequence

from starlette.applications import Starlette

from postroom.interfaces.dashboard.page import DashboardPage
from postroom.system.http_server.limits import ConnectionLimits
from postroom.system.http_server.listening import open_listener
from postroom.system.http_server.serving import serving_on


@contextlib.asynccontextmanager
async def serving(
    app: Starlette,
    *,
    host: str,
    port: int,
    before_stop: Callable[[], None] = lambda: None,
    limits: ConnectionLimits | None = None,
    allow_exposed: bool = False,
    on_refused: Callable[[str], None] = lambda _reason: None,
    tls: ssl.SSLContext | None = None,
) -> AsyncGenerator[str]:
    """Serve until the block ends; yield the address. Port 0 picks a free one.

    `before_stop` ends long requests before the server waits for all requests. A host that other machines can reach is
    refused unless `allow_exposed`. With `tls`, every connection is encrypted.
    """
    pages: Sequence[DashboardPage] = app.state.pages

    def end_streams() -> None:
        for page in pages:
            page.close()
        before_stop()

    listener = open_listener(host, port, allow_exposed=allow_exposed)
    async with serving_on(
        listener, app, limits=limits, before_stop=end_streams, on_refused=on_refused, host=host, tls=tls
    ) as address:
        yield address
