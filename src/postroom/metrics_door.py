"""`/metrics` of a process that has no pages: a worker, or a connector that runs by itself.

A few lines of HTTP are all that a scraper needs, so there is no application server in these processes. A request has to
be small and quick, and to name an address of this machine, or one of `web.allowed_hosts`.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Collection

import structlog
from prometheus_client import CONTENT_TYPE_LATEST

from postroom.core.errors import SettingsError

log = structlog.get_logger()

LARGEST_REQUEST = 8 * 1024
WITHIN_S = 5.0
MOST_AT_ONCE = 16
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


@contextlib.asynccontextmanager
async def serving_metrics(
    listen: str | None, text: Callable[[], bytes], allowed_hosts: Collection[str] = ()
) -> AsyncGenerator[str | None]:
    """Serves what `text` gives at `http://LISTEN/metrics` while the block runs. Yields the address, if there is one."""
    if listen is None:
        yield None
        return
    host, _, port = listen.rpartition(":")
    door = _Door(text, frozenset(each.lower() for each in allowed_hosts) | LOOPBACK)
    try:
        server = await asyncio.start_server(door.answer, host.strip("[]"), int(port), limit=LARGEST_REQUEST)
    except OSError as error:
        reason = error.strerror or "it cannot be used"
        raise SettingsError(f"telemetry.listen: {listen} cannot be listened on ({reason}); name a free port") from None
    async with server:
        address = f"http://{host}:{server.sockets[0].getsockname()[1]}/metrics"
        log.info("telemetry.metrics_served", address=address)
        yield address


class _Door:
    def __init__(self, text: Callable[[], bytes], hosts: frozenset[str]) -> None:
        self._text = text
        self._hosts = hosts
        self._open = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request, one answer, and the end of the connection."""
        self._open += 1
        try:
            async with asyncio.timeout(WITHIN_S):
                if self._open <= MOST_AT_ONCE:
                    head = await reader.readuntil(b"\r\n\r\n")
                    writer.write(self._answer(head.decode("latin-1")))
                    await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            self._open -= 1
            writer.close()

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
