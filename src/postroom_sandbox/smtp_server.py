"""A mail server that answers as it was told: by a table of replies, or not at all, or a byte at a time.

The table is by command: `connect` for the greeting, `EHLO`, `STARTTLS`, `AUTH`, `MAIL`, `RCPT`, `DATA`, `content` while
the content arrives, `.` after it, and so on. A longer beginning of the command comes first: `RCPT TO:<ada@` before
`RCPT`. A list is used up one by one, and its last answer stays.
"""

import asyncio
import base64
import contextlib
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

EXTENSIONS = ("PIPELINING", "SIZE 26214400", "8BITMIME", "SMTPUTF8", "DSN", "ENHANCEDSTATUSCODES")


@dataclass(frozen=True)
class Drop:
    """Closes the connection instead of an answer."""


@dataclass(frozen=True)
class Silence:
    """Never answers; without `reads`, does not even read."""

    reads: bool = True


@dataclass(frozen=True)
class Raw:
    """Sends these bytes, `every_s` seconds apart if that is not 0, and `for_ever` from the beginning again."""

    content: bytes
    every_s: float = 0.0
    for_ever: bool = False


Answer = str | Drop | Silence | Raw
Answers = Mapping[str, Answer | Sequence[Answer]]

USUAL: dict[str, str] = {
    "CONNECT": "220 {name} ESMTP",
    "HELO": "250 {name}",
    "STARTTLS": "220 2.0.0 Ready to start TLS",
    "AUTH": "235 2.7.0 Authentication successful",
    "MAIL": "250 2.1.0 Ok",
    "RCPT": "250 2.1.5 Ok",
    "DATA": "354 End data with <CR><LF>.<CR><LF>",
    ".": "250 2.0.0 Ok: queued",
    "RSET": "250 2.0.0 Ok",
    "QUIT": "221 2.0.0 Bye",
}


class ReceivedMail(NamedTuple):
    """`wire` is what came between DATA and the final dot, with its doubled dots; `content` is without them."""

    sender: str
    recipients: tuple[str, ...]
    wire: bytes
    encrypted: bool
    username: str | None

    @property
    def content(self) -> bytes:
        return (b"\r\n" + self.wire).replace(b"\r\n..", b"\r\n.")[2:]


class _Dropped(Exception):
    pass


@dataclass
class SmtpServer:
    """Listens on loopback while its `async with` block runs."""

    answers: Answers = field(default_factory=dict[str, "Answer | Sequence[Answer]"])
    extensions: Sequence[str] = EXTENSIONS
    name: str = "mx.example.org"
    tls: ssl.SSLContext | None = None
    implicit_tls: bool = False
    host: str = "127.0.0.1"
    port: int = 0
    connections: int = 0
    most_at_once: int = 0
    received: list[ReceivedMail] = field(default_factory=list[ReceivedMail])
    commands: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self._used: dict[str, int] = {}
        self._open: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "SmtpServer":
        context = self.tls if self.implicit_tls else None
        self._server = await asyncio.start_server(self._serve_client, self.host, self.port, ssl=context)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._server.close()
        for task in self._open:
            task.cancel()
        if self._open:
            await asyncio.wait(self._open)
        await self._server.wait_closed()

    async def all_closed(self) -> None:
        """Wait until no connection is open."""
        while self._open:
            await asyncio.wait(set(self._open))

    def answer(self, command: str) -> Answer:
        """The next answer to this command."""
        word = command.partition(" ")[0].upper()
        found = [
            key for key in self.answers if command.upper().startswith(key.upper()) and key.split(" ")[0].upper() == word
        ]
        if not found:
            return USUAL.get(word, "502 5.5.2 Error: command not recognized")
        key = max(found, key=len)
        given = self.answers[key]
        if not isinstance(given, list | tuple):
            return given  # type: ignore[return-value]
        used = self._used.get(key, 0)
        self._used[key] = used + 1
        return given[min(used, len(given) - 1)]

    async def _serve_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None:
            return
        self._open.add(task)
        self.connections += 1
        self.most_at_once = max(self.most_at_once, len(self._open))
        conversation = _Conversation(self, reader, writer)
        try:
            with contextlib.suppress(_Dropped, OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await conversation.run()
        finally:
            self._open.discard(task)
            writer.transport.abort() if conversation.dropped else writer.close()


class _Conversation:
    def __init__(self, server: SmtpServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._server = server
        self._reader = reader
        self._writer = writer
        self._encrypted = server.implicit_tls
        self._username: str | None = None
        self._sender: str | None = None
        self._recipients: list[str] = []
        self.dropped = False

    async def run(self) -> None:
        await self._say("connect")
        while line := await self._reader.readline():
            command = line.rstrip(b"\r\n").decode("utf-8", "replace")
            self._server.commands.append(command)
            word = command.partition(" ")[0].upper()
            match word:
                case "EHLO":
                    await self._hello(command)
                case "DATA":
                    await self._data()
                case "AUTH":
                    await self._auth(command)
                case "STARTTLS":
                    if (await self._say(command)).startswith("220") and self._server.tls is not None:
                        await self._writer.start_tls(self._server.tls)
                        self._encrypted = True
                case "QUIT":
                    await self._say(command)
                    return
                case _:
                    await self._envelope(word, command)

    async def _envelope(self, word: str, command: str) -> None:
        answer = await self._say(command)
        path = command.partition("<")[2].rpartition(">")[0]
        if word in ("MAIL", "RSET"):
            self._sender, self._recipients = None, []
        if word == "MAIL" and answer.startswith("2"):
            self._sender = path
        if word == "RCPT" and answer.startswith("2") and self._sender is not None:
            self._recipients.append(path)

    async def _hello(self, command: str) -> None:
        if any(key.upper() == "EHLO" for key in self._server.answers):
            await self._say(command)
            return
        offered = list(self._server.extensions)
        if self._server.tls is not None and not self._encrypted:
            offered.append("STARTTLS")
        lines = [self._server.name, *offered]
        text = "".join(f"250{'-' if line is not lines[-1] else ' '}{line}\r\n" for line in lines)
        await self._send(text.encode())

    async def _auth(self, command: str) -> None:
        words = command.split()
        if words[1].upper() == "PLAIN":
            self._username = base64.b64decode(words[2]).split(b"\0")[1].decode()
        elif words[1].upper() in ("XOAUTH2", "OAUTHBEARER"):
            given = base64.b64decode(words[2]).decode()
            self._username = given.partition("=")[2].partition("\x01")[0].partition(",")[0]
            if "AUTH" in self._server.answers:
                # A refused token is explained first, and the client has to answer before it is refused.
                await self._send(b"334 eyJzdGF0dXMiOiI0MDEifQ==\r\n")
                await self._reader.readline()
        else:
            await self._send(b"334 VXNlcm5hbWU6\r\n")
            self._username = base64.b64decode(await self._reader.readline()).decode()
            await self._send(b"334 UGFzc3dvcmQ6\r\n")
            await self._reader.readline()
        if not (await self._say(command)).startswith("235"):
            self._username = None

    async def _data(self) -> None:
        if "DATA" not in self._server.answers and not self._recipients:
            await self._send(b"503 5.5.1 Error: need RCPT command\r\n")
            return
        if not (await self._say("DATA")).startswith("354"):
            return
        if "content" in self._server.answers:
            await self._reader.read(1)
            await self._say("content")
        lines: list[bytes] = []
        while (line := await self._reader.readline()) != b".\r\n":
            if not line:
                raise _Dropped
            lines.append(line)
        mail = ReceivedMail(
            self._sender or "", tuple(self._recipients), b"".join(lines), self._encrypted, self._username
        )
        if (await self._say(".")).startswith("2"):
            self._server.received.append(mail)
        self._sender, self._recipients = None, []

    async def _say(self, command: str) -> str:
        match self._server.answer(command):
            case Drop():
                self.dropped = True
                raise _Dropped
            case Silence(reads):
                await (self._reader.read() if reads else asyncio.get_running_loop().create_future())
                raise _Dropped
            case Raw(content, every_s, for_ever):
                await self._drip(content, every_s, for_ever)
                return content.decode("latin-1")
            case str(answer):
                lines = answer.format(name=self._server.name) if "{name}" in answer else answer
                await self._send(b"".join(line.encode() + b"\r\n" for line in lines.split("\n")))
                return lines

    async def _drip(self, content: bytes, every_s: float, for_ever: bool) -> None:
        while True:
            for piece in [content] if not every_s else [content[at : at + 1] for at in range(len(content))]:
                await self._send(piece)
                if every_s:
                    await asyncio.sleep(every_s)
            if not for_ever:
                return

    async def _send(self, content: bytes) -> None:
        self._writer.write(content)
        await self._writer.drain()
