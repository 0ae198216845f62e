"""One SMTP connection, before its commands mean anything: lines and content in, replies out, deadlines.

What has arrived is parsed at once, as far as it goes; while something is awaited for the client, it waits. Replies to
pipelined commands leave together. A line end that is not CRLF ends the connection, in commands and in content: servers
that disagree on where a message ends is what SMTP smuggling lives on.
"""

import asyncio
import ssl
from abc import abstractmethod
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Protocol, cast

import structlog

from postroom.core.errors import PostroomError
from postroom.outbound.submission.replies import FULL, LATER, reply_to
from postroom.system.http_server.guard import address_key
from postroom.system.http_server.listening import is_loopback

log = structlog.get_logger()

LONGEST_COMMAND = 2048
LONGEST_LOGIN = 12_288
MOST_WAITING = 65_536
LINGER_S = 1.0
END = b"\r\n.\r\n"


@dataclass(frozen=True, slots=True)
class SmtpSessionLimits:
    """How long a client may take, in seconds, how large a message may be, and how many mistakes are forgiven."""

    login_s: float = 60.0
    command_s: float = 300.0
    message_s: float = 600.0
    session_s: float = 3600.0
    size: int = 25 * 1024 * 1024
    mistakes: int = 20
    logins: int = 5
    messages: int = 1000


class Room(Protocol):
    """The connections of the server, as one of them sees them."""

    def take(self, size: int) -> bool:
        """Whether content of this size may be kept in memory, besides that of others."""
        ...

    def release(self, size: int) -> None: ...

    def count(self, outcome: str) -> None: ...

    def left(self, connection: "SmtpConnection") -> None: ...


class SmtpConnection(asyncio.Protocol):
    """`context` is that of an encrypted connection, `implicit` whether it was encrypted from its first byte."""

    def __init__(
        self,
        host: str,
        limits: SmtpSessionLimits,
        room: Room,
        context: ssl.SSLContext | None,
        *,
        implicit: bool = False,
    ) -> None:
        self._host = host
        self._limits = limits
        self._room = room
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport = cast("asyncio.Transport", None)
        self.address = ""
        self._is_local = False
        self._is_secure = implicit
        self._unread = bytearray()
        self._searched = 0
        self._checked = 0
        self._taken = 0
        self._replies: list[str] = []
        self._task: asyncio.Task[None] | None = None
        self._is_paused = False
        self._is_writable = True
        self._is_closing = False
        self._is_last = False
        self._in_content = False
        self._is_discarding = False
        self._longest_line = LONGEST_COMMAND
        self._mistakes = 0
        self.is_stranger = True
        self.opened = self._loop.time()
        self._deadline = self.opened + limits.login_s

    @abstractmethod
    def _take_command(self, text: str) -> None:
        """Do what a line says that is not content."""

    @abstractmethod
    async def _take_message(self, content: bytes) -> None:
        """Accept the content of a mail, and reply."""

    @abstractmethod
    def _end_mail(self) -> None:
        """Forget the mail whose content was just read."""

    @abstractmethod
    def _begin_again(self) -> None:
        """Forget everything that came before the handshake."""

    # The connection

    @property
    def is_busy(self) -> bool:
        """Whether something is being done for the client."""
        return self._task is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        peer = self._transport.get_extra_info("peername")
        self.address = address_key(peer)
        self._is_local = bool(peer) and is_loopback(str(peer[0]))

    def begin(self) -> None:
        """Greet the client, once the server has admitted it."""
        self._reply(f"220 {self._host} ESMTP")
        self._flush()

    def turn_away(self, reply: str) -> None:
        """End the connection with this reply."""
        if not self._is_closing:
            self._is_closing = True
            self._transport.write(f"{reply}\r\n".encode())
            self._transport.close()
        else:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._is_closing:
            return
        self._unread += data
        if self._task is None and self._is_writable:
            self._advance()
        elif len(self._unread) > MOST_WAITING and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_closing = True
        self._unread.clear()
        self._give_back()
        self._room.left(self)

    def pause_writing(self) -> None:
        self._is_writable = False

    def resume_writing(self) -> None:
        self._is_writable = True
        if self._task is None:
            self._advance()

    def check_deadline(self, now: float) -> None:
        """End a connection whose time is over. A commit is never interrupted: it has limits of its own."""
        if self._task is None and (now >= self._deadline or now - self.opened >= self._limits.session_s):
            self._end("421 4.4.2 You took too long", "too_late")

    def stop(self) -> None:
        """End the connection unless something is being done for it; then, after that."""
        if self._task is None:
            self._end("421 4.3.2 The server is stopping", None)
        else:
            self._is_last = True

    def _begin_handshake(self) -> None:
        """Encrypt the connection. What the client sends from now on is not read as a command."""
        self._transport.pause_reading()
        self._await(self._encrypt())

    async def _encrypt(self) -> None:
        try:
            transport = await self._loop.start_tls(
                self._transport,
                self,
                cast("ssl.SSLContext", self._context),
                server_side=True,
                ssl_handshake_timeout=self._limits.login_s,
            )
        except (TimeoutError, OSError, ssl.SSLError):
            transport = None
        if transport is None:
            self._is_closing = True
            self._transport.abort()
            return
        self._transport = transport
        self._is_secure = True
        self._begin_again()

    # Parsing

    def _advance(self) -> None:
        while self._task is None and self._is_writable and not self._is_closing:
            if not (self._take_content() if self._in_content else self._take_line()):
                break
        self._flush()
        if self._is_paused and self._task is None and not self._is_closing:
            self._is_paused = False
            self._transport.resume_reading()

    def _take_line(self) -> bool:
        end = self._unread.find(b"\n", self._searched)
        if end < 0 or end > self._longest_line:
            self._searched = len(self._unread)
            if len(self._unread) > self._longest_line:
                self._end("500 5.5.2 The line is too long", "errors")
            return False
        line = bytes(self._unread[: end + 1])
        del self._unread[: end + 1]
        self._searched = 0
        if not line.endswith(b"\r\n") or b"\r" in line[:-2]:
            self._refuse_line_end()
            return False
        self._wait_for_command()
        self._read_command(line[:-2])
        return True

    def _read_command(self, line: bytes) -> None:
        try:
            text = line.decode()
        except UnicodeDecodeError:
            self._mistake("500 5.5.2 The command is not UTF-8")
            return
        if text.isprintable():
            self._take_command(text)
        else:
            self._mistake("500 5.5.2 The command contains a control character")

    def _refuse_line_end(self) -> None:
        self._end("521 5.5.2 A line ends in LF or CR alone; end every line in CRLF", "bare_line_end")

    def _take_content(self) -> bool:
        """Take the content up to its end, a line with a single dot. Nothing but CRLF ends a line."""
        is_empty = self._unread.startswith(b".\r\n") and not self._is_discarding
        found = 0 if is_empty else self._unread.find(END, max(0, self._searched - len(END)))
        self._searched = len(self._unread)
        end = len(self._unread) if found < 0 else found + (3 if is_empty else len(END))
        if not self._is_discarding and not self._has_whole_line_ends(end):
            self._refuse_line_end()
            return False
        if not self._fits(end) or found < 0:
            return False
        content = b"" if is_empty else bytes(self._unread[: found + 2])
        del self._unread[:end]
        self._in_content, self._searched = False, 0
        self._wait_for_command()
        self._await(self._refuse_size() if self._is_discarding else self._take_and_release(_remove_dots(content)))
        return True

    async def _refuse_size(self) -> None:
        self._is_discarding = False
        self._end_mail()
        self._mistake(f"552 5.3.4 The message is larger than {self._limits.size} bytes")

    async def _take_and_release(self, content: bytes) -> None:
        try:
            await self._take_message(content)
        finally:
            self._give_back()

    def _begin_content(self) -> None:
        """Read what comes next as content."""
        self._in_content = True
        self._searched = self._checked = 0
        self._deadline = self._loop.time() + self._limits.message_s

    def _has_whole_line_ends(self, end: int) -> bool:
        """Whether LF and CR occur only together, up to here. What was checked is not checked again."""
        if end and self._unread[end - 1] == 13 and end == len(self._unread):
            end -= 1  # its LF may be on its way
        start, self._checked = self._checked, end
        counted = [self._unread.count(each, start, end) for each in (b"\r\n", b"\r", b"\n")]
        return counted[0] == counted[1] == counted[2]

    def _fits(self, end: int) -> bool:
        """Keep within the limits of one message, and of all of them in memory. False if the connection ends here.

        What is too large is read to its end, and forgotten.
        """
        if end > self._limits.size + len(END) and not self._is_discarding:
            self._is_discarding = True
            self._give_back()
            self._room.count("too_large")
        if self._is_discarding:
            if len(self._unread) == end and not self._unread.endswith(END):
                del self._unread[: -len(END)]
                self._searched = 0
            return True
        if end > self._taken:
            if not self._room.take(end - self._taken):
                self._end(FULL, "crowded")
                return False
            self._taken = end
        return True

    # Replies and waiting

    def _reply(self, line: str) -> None:
        self._replies.append(line)

    def _flush(self) -> None:
        if self._replies and not self._transport.is_closing():
            text = "\r\n".join((*self._replies, ""))
            self._replies.clear()
            self._transport.write(text.encode())

    def _mistake(self, reply: str) -> None:
        self._mistakes += 1
        if self._mistakes > self._limits.mistakes:
            self._end("421 4.7.0 There were too many mistakes", "errors")
        else:
            self._reply(reply)

    def _end(self, reply: str, outcome: str | None) -> None:
        if self._is_closing:
            self._transport.abort()
            return
        self._reply(reply)
        self._flush()
        self._is_closing = True
        self._unread.clear()
        if outcome is None:
            self._transport.close()
        else:  # what the client still sends is read, or the system would discard our reply with it
            self._loop.call_later(LINGER_S, self._transport.close)
        if outcome is not None:
            self._room.count(outcome)

    def _wait_for_command(self) -> None:
        limits = self._limits
        self._deadline = self.opened + limits.login_s if self.is_stranger else self._loop.time() + limits.command_s

    def _give_back(self) -> None:
        if self._taken:
            self._room.release(self._taken)
            self._taken = 0

    def _await(self, work: Coroutine[Any, Any, None]) -> None:
        """Do this before the next command is read."""
        self._flush()
        self._task = self._loop.create_task(self._do(work))

    async def _do(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except PostroomError as error:
            self._reply(reply_to(error))
        except Exception as error:
            log.error("submission.failed", error=type(error).__name__)
            self._reply(LATER)
        finally:
            self._task = None
        if self._is_last:
            self.stop()
        elif not self._is_closing:
            self._wait_for_command()
            self._advance()


def _remove_dots(content: bytes) -> bytes:
    """The content without the dot that was put before every line that begins with one."""
    content = content.replace(b"\r\n.", b"\r\n")
    return content[1:] if content.startswith(b".") else content
