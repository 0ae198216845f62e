"""`/metrics` of a process that has no pages: a worker, or a connector that runs by itself.

A few lines of HTTP are all that a scraper needs, so there is no application server in these processes. A request has to
be small and quick, and to name an address of this machine, or one of `web.allowed_hosts`.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Collection
from typing import cast

import structlog
from prometheus_client import CONTENT_TYPE_LATEST

from postroom.http_server.listening import open_listener

log = structlog.get_logger()

LARGEST_REQUEST = 8 * 1024
WITHIN_S = 5.0
MOST_AT_ONCE = 16
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


@contextlib.asynccontextmanager
async def serving_metrics(
    listen: str | None, text: Callable[[], bytes], allowed_hosts: Collection[str] = (), *, allow_exposed: bool = False
) -> AsyncGenerator[str | None]:
    """Serves what `text` gives at `http://LISTEN/metrics` while the block runs. Yields the address, if there is one.

    Metrics name mailboxes, so an address that other machines reach is refused unless `allow_exposed`.
    """
    if listen is None:
        yield None
        return
    host, _, port = listen.rpartition(":")
    door = _Door(text, frozenset(each.lower() for each in allowed_hosts) | LOOPBACK)
    listener = open_listener(
        host,
        int(port),
        allow_exposed=allow_exposed,
        what="telemetry.listen",
        setting="telemetry.listen",
        shows="the addresses of your mailboxes",
    )
    server = await asyncio.start_server(door.answer, sock=listener, limit=LARGEST_REQUEST)
    async with server:
        address = f"http://{host}:{server.sockets[0].getsockname()[1]}/metrics"
        log.info("telemetry.metrics_served", address=address)
        try:
            yield address
        finally:
            server.close()
            await door.close()


class _Door:
    def __init__(self, text: Callable[[], bytes], hosts: frozenset[str]) -> None:
        self._text = text
        self._hosts = hosts
        self._silent: dict[asyncio.StreamWriter, None] = {}
        self._visits: set[asyncio.Task[object]] = set()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request, one answer, and the end of the connection."""
        visit = cast("asyncio.Task[object]", asyncio.current_task())
        self._visits.add(visit)
        self._make_room()
        self._silent[writer] = None
        try:
            async with asyncio.timeout(WITHIN_S):
                head = await reader.readuntil(b"\r\n\r\n")
                self._silent.pop(writer, None)
                writer.write(self._answer(head.decode("latin-1")))
                writer.close()
                await writer.wait_closed()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            writer.transport.abort()
        finally:
            self._silent.pop(writer, None)
            self._visits.discard(visit)

    async def close(self) -> None:
        """Shows out who has not asked yet, and lets the others have their answers."""
        for writer in self._silent:
            writer.transport.abort()
        if self._visits:
            await asyncio.wait(self._visits)

    def _make_room(self) -> None:
        """Of too many clients without a whole request, the one that has waited longest is shown out."""
        while len(self._silent) >= MOST_AT_ONCE:
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
