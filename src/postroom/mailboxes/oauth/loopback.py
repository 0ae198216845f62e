"""Waits on this machine for the browser to return from a provider's consent page, and tells the user to close it.

A server for one visitor on a free port of 127.0.0.1. Visitors without the `state` of the request get an error and
change nothing.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from html import escape
from typing import cast
from urllib.parse import urlsplit

from postroom.core.errors import MailboxError
from postroom.mailboxes.oauth.consent import ConsentRequest, answer_in

LARGEST_REQUEST = 16_384
SLOWEST_S = 10.0
MOST_VISITS = 16
FINISHED = "Postroom has the consent. You can close this page."


class Loopback:
    """The redirect address, and the code that arrives there."""

    def __init__(self, port: int, slowest_s: float = SLOWEST_S) -> None:
        self._slowest_s = slowest_s
        self.redirect_uri = f"http://127.0.0.1:{port}/"
        # Browsers open connections in advance and then send nothing for a long time.
        self.silent: dict[asyncio.Task[object], None] = {}
        self._request: ConsentRequest | None = None
        self._code: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def expect(self, request: ConsentRequest) -> None:
        """Accept the answer to this request from now on."""
        self._request = request

    async def code(self) -> str:
        """The code from the browser. Raises ConsentRefused if the user refused."""
        return await self._code

    async def visited(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(self._slowest_s):
                writer.write(_page(*await self._response(reader)))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.CancelledError):
            writer.transport.abort()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    async def _response(self, reader: asyncio.StreamReader) -> tuple[int, str]:
        try:
            async with asyncio.timeout(self._slowest_s / 2):
                head = await self._request_of(reader)
        except TimeoutError:
            return 408, "The request did not arrive in time."
        except asyncio.LimitOverrunError:
            return 431, "The request is too large."
        return self._answer(head.partition(b"\r\n")[0].decode("latin-1"))

    async def _request_of(self, reader: asyncio.StreamReader) -> bytes:
        visit = cast("asyncio.Task[object]", asyncio.current_task())
        self.silent[visit] = None
        try:
            return await reader.readuntil(b"\r\n\r\n")
        finally:
            self.silent.pop(visit, None)

    def _answer(self, line: str) -> tuple[int, str]:
        verb, _, rest = line.partition(" ")
        where = urlsplit(rest.partition(" ")[0])
        if verb != "GET":
            return 405, "Only GET is answered here."
        if where.path != "/" or not where.query or self._request is None:
            return 404, "There is nothing here."
        if f"state={self._request.state}" not in where.query.split("&"):
            return 400, "This answer belongs to another request."
        return self._take_code(self._request, f"?{where.query}")

    def _take_code(self, request: ConsentRequest, query: str) -> tuple[int, str]:
        try:
            code, error = answer_in(request, query), None
        except MailboxError as refused:
            code, error = "", refused
        if not self._code.done():
            self._code.set_exception(error) if error else self._code.set_result(code)
        return (400, str(error)) if error else (200, FINISHED)


@contextlib.asynccontextmanager
async def listening(slowest_s: float = SLOWEST_S) -> AsyncGenerator[Loopback]:
    """Run the server while the block runs. With too many visitors, the one silent for longest is disconnected."""
    visits: set[asyncio.Task[None]] = set()

    async def visited(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(visits) >= MOST_VISITS:
            longest = next(iter(loopback.silent), None)
            if longest is None:
                writer.transport.abort()
                return
            loopback.silent.pop(longest)
            longest.cancel()
        visit = asyncio.ensure_future(loopback.visited(reader, writer))
        visits.add(visit)
        await asyncio.wait({visit})
        visits.discard(visit)

    server = await asyncio.start_server(visited, "127.0.0.1", 0, limit=LARGEST_REQUEST)
    loopback = Loopback(server.sockets[0].getsockname()[1], slowest_s)
    try:
        yield loopback
    finally:
        server.close()
        for visit in tuple(loopback.silent):
            visit.cancel()
        if visits:
            await asyncio.wait(visits)
        await server.wait_closed()


def _page(status: int, text: str) -> bytes:
    body = f"<!doctype html><meta charset=utf-8><title>Postroom</title><p>{escape(text)}</p>\n".encode()
    words = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 408: "Request Timeout"}
    words[431] = "Request Header Fields Too Large"
    headers = {
        "Content-Type": "text/html; charset=utf-8",
        "Content-Length": str(len(body)),
        "Cache-Control": "no-store",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'",
        "Connection": "close",
    }
    lines = [f"HTTP/1.1 {status} {words[status]}", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode() + body
