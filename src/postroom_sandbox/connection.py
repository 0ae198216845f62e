"""Connection faults on request: delayed, reset, no reply, truncated, or a far too large reply.

Faults below HTTP need the connection itself, which the sandbox's server puts into the request's scope.
"""

import asyncio
import contextlib
import os
import socket
import struct
import zlib
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import cast

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from postroom_sandbox.faults import Fault, Faults

TRANSPORT = "postroom.transport"

Sleep = Callable[[float], Awaitable[None]]


class FaultyConnections:
    """Middleware that applies the requested faults."""

    def __init__(self, app: ASGIApp, faults: Faults, sleep: Sleep) -> None:
        self._app = app
        self._faults = faults
        self._sleep = sleep

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        fault = None if path.startswith("/sandbox/") else self._faults.connection_fault(path)
        if fault is None:
            await self._app(scope, receive, send)
            return
        match fault.kind:
            case "delay":
                await self._sleep(fault.delay_s)
                await self._app(scope, receive, send)
            case "reset":
                await _reset(scope, receive)
            case "drop_reply":
                await self._app(scope, receive, _nowhere)
                await _reset(scope, receive)
            case "truncate":
                answer = _BufferedResponse()
                await self._app(scope, receive, answer)
                await answer.begin(send)
                await _close(scope, receive)
            case _:
                await _bomb(fault, send)


class _BufferedResponse:
    """An ASGI `send` that holds the answer back."""

    def __init__(self) -> None:
        self._start: Message = {}
        self._body = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
        else:
            self._body += message.get("body", b"")

    async def begin(self, send: Send) -> None:
        """Send half of the answer, with the content length of the whole."""
        headers = [header for header in self._start["headers"] if header[0].lower() != b"content-length"]
        length = str(max(len(self._body), 1)).encode()
        await send({**self._start, "headers": [*headers, (b"content-length", length)]})
        await send({"type": "http.response.body", "body": self._body[: len(self._body) // 2], "more_body": True})


async def _nowhere(message: Message) -> None:
    pass


async def _reset(scope: Scope, receive: Receive) -> None:
    transport = transport_of(scope)
    if transport is not None:
        # With a linger time of zero, the kernel sends RST instead of FIN.
        connected: socket.socket = transport.get_extra_info("socket")
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(connected.fileno())) as shared:
            shared.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    await _until_gone(receive)


async def _close(scope: Scope, receive: Receive) -> None:
    transport = transport_of(scope)
    if transport is not None:
        transport.close()
    await _until_gone(receive)


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def transport_of(scope: Scope) -> asyncio.Transport | None:
    """The connection of the request."""
    extensions = cast("dict[str, asyncio.Transport]", scope.get("extensions") or {})
    return extensions.get(TRANSPORT)


async def _bomb(fault: Fault, send: Send) -> None:
    """Send a small reply that decompresses to `size` bytes."""
    body = await asyncio.to_thread(_pack, fault.size)
    headers = [
        (b"content-type", b"application/json; charset=UTF-8"),
        (b"content-encoding", b"gzip"),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@lru_cache(maxsize=1)
def _pack(size: int) -> bytes:
    """At least `size` bytes of unterminated JSON, compressed."""
    packer = zlib.compressobj(level=6, wbits=31)
    piece = b"0" * (1 << 20)
    packed = packer.compress(b'{"x": "')
    for begin in range(0, size, len(piece)):
        packed += packer.compress(piece[: size - begin])
    return packed + packer.flush()
