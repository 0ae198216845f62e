"""One connection to a mail server: bytes out, replies in, every wait bounded.

A reply must be complete within its time, however many bytes of it arrive meanwhile; and nobody may send more than a
reply needs. After STARTTLS nothing that came before the handshake is believed.
"""

import asyncio
import ssl
from typing import cast

from postroom.core.outbound.replies import LONGEST_LINE, BadReply, Phase, Reply, ReplyLines, found_out
from postroom.outbound.smtp.errors import ConnectionLost

# Replies to a whole group of pipelined commands may wait here.
MOST_UNREAD = 262_144
BLOCK = 65_536


class Channel(asyncio.Protocol):
    def __init__(self, host: str) -> None:
        self.host = host
        self._transport: asyncio.Transport | None = None
        self._unread = bytearray()
        self._searched = 0
        self._ended: str | None = None
        self._arrival: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None
        self._closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._unread += data
        if len(self._unread) > MOST_UNREAD:
            self._end("it sends without end")
            self.abort()
        _wake(self._arrival)

    def eof_received(self) -> bool:
        self._end("it closed the connection")
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._end("the connection was lost" if exc is not None else "it closed the connection")
        _wake(self._room)
        _wake(self._closed)

    def pause_writing(self) -> None:
        self._room = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        _wake(self._room)
        self._room = None

    @property
    def is_quiet(self) -> bool:
        """Whether the connection is open and nothing unexpected has come: only then may it be used again."""
        return self._ended is None and not self._unread and not self._open.is_closing()

    @property
    def is_encrypted(self) -> bool:
        return self._open.get_extra_info("ssl_object") is not None

    @property
    def tls(self) -> str | None:
        """The version of TLS that protects the connection, such as `TLSv1.3`; None in the clear."""
        encrypted: ssl.SSLObject | None = self._open.get_extra_info("ssl_object")
        return None if encrypted is None else encrypted.version()

    @property
    def leads_to_ourselves(self) -> bool:
        """Whether both ends of the connection have the same address."""
        here, there = self._open.get_extra_info("sockname"), self._open.get_extra_info("peername")
        return bool(here and there and here[0] == there[0])

    def write(self, data: bytes, phase: Phase) -> None:
        if self._ended is not None:
            raise self.lost(phase)
        self._open.write(data)

    async def write_all(self, data: bytes, phase: Phase, block_s: float) -> None:
        """Write a lot, piece by piece, as fast as the other side reads. The last piece may still be in our buffer."""
        for start in range(0, len(data), BLOCK):
            self.write(data[start : start + BLOCK], phase)
            if self._room is not None and self._ended is None:
                try:
                    async with asyncio.timeout(block_s):
                        await self._room
                except TimeoutError:
                    self._end(f"it read nothing for {block_s:g} s")
                    self.abort()
                    raise self.lost(phase) from None

    async def reply(self, phase: Phase, seconds: float) -> Reply:
        return (await self.reply_lines(phase, seconds)).reply(self.host, phase)

    async def reply_lines(self, phase: Phase, seconds: float) -> ReplyLines:
        """The next reply. Raises ConnectionLost if it does not come, is none, or does not end in time."""
        lines = ReplyLines.none_yet()
        try:
            async with asyncio.timeout(seconds):
                while not lines.add(await self._line(phase)):
                    pass
        except TimeoutError:
            self._end(f"no complete reply came within {seconds:g} s")
        except BadReply as error:
            self._end(str(error))
        else:
            return lines
        self.abort()
        raise self.lost(phase)

    async def start_tls(self, context: ssl.SSLContext, name: str, seconds: float) -> None:
        """Encrypt the connection. Raises OSError, which ssl.SSLError is, or TimeoutError; then it is closed."""
        if self._unread:
            raise ssl.SSLError("the server sent something in the clear after its reply to STARTTLS")
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(seconds):
                transport = await loop.start_tls(self._open, self, context, server_hostname=name)
        except BaseException:
            self.abort()
            raise
        if transport is None:
            raise ConnectionResetError("the connection was closed during the handshake")
        self._transport = transport

    def lost(self, phase: Phase) -> ConnectionLost:
        return ConnectionLost(found_out("4.4.2", self._ended or "the connection is closed", phase, self.host))

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
        self._end("we closed the connection")

    async def close(self, goodbye_s: float) -> None:
        """Say QUIT and wait a little for the answer, as RFC 5321 asks."""
        if self.is_quiet:
            try:
                self.write(b"QUIT\r\n", "local")
                await self.reply("local", goodbye_s)
            except ConnectionLost:
                pass
        self._open.close()
        try:
            async with asyncio.timeout(goodbye_s):
                await asyncio.shield(self._closed)
        except TimeoutError:
            self.abort()

    @property
    def _open(self) -> asyncio.Transport:
        if self._transport is None:
            raise RuntimeError("the channel is used before it is connected")
        return self._transport

    def _end(self, why: str) -> None:
        """Remember why the connection ended; the first reason is the true one."""
        self._ended = self._ended or why
        _wake(self._arrival)

    async def _line(self, phase: Phase) -> bytes:
        while (end := self._unread.find(b"\n", self._searched)) < 0:
            self._searched = len(self._unread)
            if self._searched > LONGEST_LINE:
                raise BadReply(f"a line of a reply has more than {LONGEST_LINE} bytes")
            if self._ended is not None:
                raise self.lost(phase)
            self._arrival = asyncio.get_running_loop().create_future()
            await self._arrival
        line = bytes(self._unread[:end])
        del self._unread[: end + 1]
        self._searched = 0
        return line.removesuffix(b"\r")


def _wake(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)
