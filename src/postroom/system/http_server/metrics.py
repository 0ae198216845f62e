"""Serves `/metrics` in processes without pages: workers, and connectors that run as processes of their own.

A few lines of HTTP are enough for a scraper, so these processes have no application server. A request must be small and
quick, and its Host must be a loopback name or one of `web.allowed_hosts`.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Collection
from typing import cast

import structlog
from prometheus_client import CONTENT_TYPE_LATEST

from postroom.core.hosts import LOCAL_NAMES
from postroom.system.http_server.listening import open_listener

log = structlog.get_logger()

LARGEST_REQUEST = 8 * 1024
TIMEOUT_S = 5.0
MOST_WAITING = 16
INSTEAD = (
    "and there is no sign-in: anyone who reaches it can read the addresses of your mailboxes; use 127.0.0.1 and a "
    "tunnel such as `ssh -L`, or set web.allow_unprotected_bind to true"
)


@contextlib.asynccontextmanager
async def serving_metrics(
    listen: str | None, text: Callable[[], bytes], allowed_hosts: Collection[str] = (), *, allow_exposed: bool = False
) -> AsyncGenerator[str | None]:
    """Serve the result of `text` at `http://LISTEN/metrics` while the block runs; yield the address, if there is one.

    Metrics name mailboxes, so an address that other machines can reach is refused unless `allow_exposed`.
    """
    if listen is None:
        yield None
        return
    host, _, port = listen.rpartition(":")
    metrics = _MetricsServer(text, frozenset(each.lower() for each in allowed_hosts) | LOCAL_NAMES)
    listener = open_listener(
        host,
        int(port),
        allow_exposed=allow_exposed,
        what="telemetry.listen",
        setting="telemetry.listen",
        instead=INSTEAD,
        is_protected=False,
    )
    server = await asyncio.start_server(metrics.answer, sock=listener, limit=LARGEST_REQUEST)
    async with server:
        address = f"http://{host}:{server.sockets[0].getsockname()[1]}/metrics"
        log.info("telemetry.metrics_served", address=address)
        try:
            yield address
        finally:
            server.close()
            await metrics.close()


class _MetricsServer:
    def __init__(self, text: Callable[[], bytes], hosts: frozenset[str]) -> None:
        self._text = text
        self._hosts = hosts
        self._silent: dict[asyncio.StreamWriter, None] = {}
        self._answering: set[asyncio.Task[object]] = set()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request and close the connection."""
        task = cast("asyncio.Task[object]", asyncio.current_task())
        self._answering.add(task)
        self._make_room()
        self._silent[writer] = None
        try:
            async with asyncio.timeout(TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
                self._silent.pop(writer, None)
                writer.write(self._answer(head.decode("latin-1")))
                writer.close()
                await writer.wait_closed()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            writer.transport.abort()
        finally:
            self._silent.pop(writer, None)
            self._answering.discard(task)

    async def close(self) -> None:
        """Abort connections without a complete request, and finish answering the others."""
        for writer in self._silent:
            writer.transport.abort()
        if self._answering:
            await asyncio.wait(self._answering)

    def _make_room(self) -> None:
        """Abort the connections that have waited longest without a complete request, if there are too many."""
        while len(self._silent) >= MOST_WAITING:
            longest = next(iter(self._silent))
            del self._silent[longest]
            longest.transport.abort()

    def _answer(self, head: str) -> bytes:
        request, *lines = head.split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        host = headers.get("host", "").lower()
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        method, _, path = request.partition(" ")
        if name.strip("[]") not in self._hosts:
            return _response("421 Misdirected Request", b"this name is not served here\n")
        if method not in ("GET", "HEAD") or path.split(" ")[0].partition("?")[0] != "/metrics":
            return _response("404 Not Found", b"only GET /metrics is served here\n")
        return _response("200 OK", self._text(), CONTENT_TYPE_LATEST)


def _response(status: str, body: bytes, content_type: str = "text/plain; charset=utf-8") -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
        "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
