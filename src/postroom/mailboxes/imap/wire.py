"""The bytes between us and an IMAP server: a socket, with or without TLS, that turns what comes into responses."""

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, cast

from postroom.core.errors import BadInput
from postroom.mailboxes.imap.errors import BadAnswer, ImapError, NotSecure, Unreachable, bad_certificate
from postroom.mailboxes.imap.responses import Response, ResponseReader
from postroom.mailboxes.imap.tls import TlsSession

PROBE_AFTER_S, PROBE_EVERY_S, PROBES = 120, 30, 4
Security = Literal["tls", "starttls", "plain"]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a server listens, and how the connection is secured. Plain only to this machine: nothing else protects the
    password.
    """

    host: str
    port: int
    security: Security = "tls"

    def __post_init__(self) -> None:
        if self.security == "plain" and not is_loopback(self.host):
            raise BadInput("security", f"plain is not allowed to {self.host[:100]}", "use tls or starttls")


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Wire(asyncio.Protocol):
    """One connection. `on_response` gets each response, `on_lost` the reason when it ends; both at most until then."""

    def __init__(
        self, host: str, on_response: Callable[[Response], None], on_lost: Callable[[ImapError], None]
    ) -> None:
        self._host = host
        self._on_response = on_response
        self._on_lost = on_lost
        self._reader = ResponseReader()
        self._transport: asyncio.Transport | None = None
        self._tls: TlsSession | None = None
        self._secured: asyncio.Future[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._is_lost = False
        self._is_plain_over = False

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._is_lost

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        # Without a buffer a write is the system call itself, also in uvloop: the gate's check is right before it.
        self._transport.set_write_buffer_limits(0)
        _probe(transport.get_extra_info("socket"))

    def expect_end_of_plain(self) -> None:
        """From the next response on, nothing may come before TLS: it would be somebody else's."""
        self._is_plain_over = True

    async def secure(self, context: ssl.SSLContext) -> None:
        """Start TLS, and wait until the certificate has been checked."""
        self._is_plain_over = False
        self._reader = ResponseReader()
        self._secured = asyncio.get_running_loop().create_future()
        self._tls = TlsSession(context, self._host)
        self._send_raw(self._tls.begin())
        await self._secured

    def data_received(self, data: bytes) -> None:
        if self._is_lost:
            return
        try:
            self._read(data)
        except ssl.SSLCertVerificationError as error:
            self.lose(bad_certificate(self._host, error))
        except ssl.SSLError as error:
            self.lose(NotSecure(self._host, f"TLS failed ({error.reason or 'no reason given'})"))
        except ImapError as error:
            self.lose(error)

    def _read(self, data: bytes) -> None:
        is_closed = False
        if self._tls is not None:
            data, reply, is_closed = self._tls.receive(data)
            self._send_raw(reply)
            if self._tls.is_open and self._secured is not None and not self._secured.done():
                self._secured.set_result(None)
        if data:
            found = self._reader.feed(data)
            if self._is_plain_over and (len(found) > 1 or not self._reader.is_between_responses):
                raise NotSecure(self._host, "something was sent between STARTTLS and TLS")
            for response in found:
                self._on_response(response)
        if is_closed:
            self.lose(Unreachable(self._host, "it closed the connection"))

    async def write(self, content: bytes, check: Callable[[], None] | None = None) -> None:
        """Send this. `check` is called right before, and may raise to keep it from being sent."""
        # What an earlier write has left goes first, so that this one is written at once.
        await self._writable.wait()
        if self._is_lost:
            raise Unreachable(self._host, "the connection has ended")
        if check is not None:
            check()
        self._send_raw(content if self._tls is None else self._tls.send(content))
        await self._writable.wait()

    def _send_raw(self, data: bytes) -> None:
        if data and self._transport is not None:
            self._transport.write(data)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        middle = "" if self._reader.is_between_responses else " in the middle of an answer"
        self.lose(Unreachable(self._host, f"it closed the connection{middle}"))

    def lose(self, error: ImapError) -> None:
        """End the connection for this reason; only the first one counts."""
        if self._is_lost:
            return
        self._is_lost = True
        self._writable.set()
        if self._transport is not None:
            self._transport.abort()
        if self._secured is not None and not self._secured.done():
            self._secured.set_exception(error)
        # Responses are parsed as they come: what is left is of no use, and may be large.
        self._reader = ResponseReader()
        self._on_lost(error)


def _probe(connected: socket.socket) -> None:
    """Let TCP ask whether the other end is still there: in IDLE nothing may be sent for half an hour, and a router that
    has forgotten the connection says nothing.
    """
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", PROBE_AFTER_S), ("TCP_KEEPINTVL", PROBE_EVERY_S), ("TCP_KEEPCNT", PROBES)):
        if hasattr(socket, name):
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


async def open_wire(
    endpoint: Endpoint,
    on_response: Callable[[Response], None],
    on_lost: Callable[[ImapError], None],
    context: ssl.SSLContext | None,
) -> Wire:
    """Connect; with implicit TLS, secured. The caller limits the time."""
    loop = asyncio.get_running_loop()
    try:
        _, wire = await loop.create_connection(
            lambda: Wire(endpoint.host, on_response, on_lost), endpoint.host, endpoint.port
        )
    except OSError as error:
        raise Unreachable(endpoint.host, f"port {endpoint.port}: {error.strerror or type(error).__name__}") from None
    if endpoint.security == "tls":
        if context is None:
            raise BadAnswer("TLS needs a context")
        try:
            await wire.secure(context)
        except BaseException:
            wire.lose(Unreachable(endpoint.host, "TLS was not finished"))
            raise
    return wire
