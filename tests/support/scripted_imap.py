"""IMAP servers on a bad day: one that answers as the test says, and one that stands before a real one and meddles."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field

GREETING = b"* OK [CAPABILITY IMAP4rev1 SASL-IR AUTH=PLAIN UIDPLUS MOVE] ready\r\n"


@dataclass
class Talk:
    """One connection, as the server sees it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def say(self, *lines: bytes) -> None:
        self.writer.write(b"".join(each + b"\r\n" for each in lines))

    async def heard(self) -> tuple[bytes, bytes]:
        """The tag and the rest of the next command. Raises EOFError when the client is gone."""
        line = await self.reader.readline()
        if not line:
            raise EOFError
        tag, _, rest = line.rstrip(b"\r\n").partition(b" ")
        return tag, rest

    async def obey(self, answers: dict[bytes, bytes]) -> None:
        """Answer each command by the longest beginning that is known; `%T` stands for its tag."""
        while True:
            tag, rest = await self.heard()
            begins = [each for each in answers if rest.upper().startswith(each)]
            answer = answers[max(begins, key=len)] if begins else b"%T OK done\r\n"
            self.writer.write(answer.replace(b"%T", tag))


Script = Callable[[Talk], Awaitable[None]]


@contextlib.asynccontextmanager
async def scripted_imap(script: Script, context: ssl.SSLContext | None = None) -> AsyncGenerator[int]:
    """The port of a server that follows the script on each connection."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(EOFError, ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            await script(Talk(reader, writer))

    async with _listening(serve, context) as port:
        yield port


@contextlib.asynccontextmanager
async def _listening(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
    context: ssl.SSLContext | None = None,
) -> AsyncGenerator[int]:
    """Serve until the end of the block, and leave nothing behind."""
    tasks: set[asyncio.Task[None]] = set()
    writers: list[asyncio.StreamWriter] = []

    async def run(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # When the block has ended, it is canceled. asyncio would log a canceled connection as an error.
        with contextlib.suppress(asyncio.CancelledError):
            await serve(reader, writer)
            writer.close()
        await _ended(writer)

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """At once, in the call that accepts the connection: a task that never began would leave it open."""
        writers.append(writer)
        tasks.add(asyncio.create_task(run(reader, writer)))

    server = await asyncio.start_server(begin, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for each in writers:
            await _ended(each)
        await server.wait_closed()


async def _ended(writer: asyncio.StreamWriter) -> None:
    if not writer.is_closing():
        writer.transport.abort()
    # What is waited for is canceled with whoever waited for it first.
    with contextlib.suppress(OSError, ssl.SSLError, asyncio.CancelledError):
        await writer.wait_closed()


@dataclass
class Meddler:
    """Stands before a real server, without TLS. `ask` changes what the client sends, line by line; None swallows it.
    `answers` changes what the server sends, in chunks.
    """

    ask: Callable[[bytes], bytes | None] = lambda line: line
    answers: Callable[[bytes], bytes] = lambda chunk: chunk
    replies: Callable[[bytes], bytes | None] = lambda line: None
    """An answer in the server's place; the line is then swallowed."""
    heard: list[bytes] = field(default_factory=list[bytes])
    _writers: list[asyncio.StreamWriter] = field(default_factory=list[asyncio.StreamWriter])

    @contextlib.asynccontextmanager
    async def before(self, port: int, host: str = "127.0.0.1") -> AsyncGenerator[int]:
        """The port of the meddler."""
        async with _listening(lambda reader, writer: self._serve(reader, writer, host, port)) as own_port:
            yield own_port

    def cut(self) -> None:
        """End all connections."""
        for each in self._writers:
            each.transport.abort()
        self._writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int) -> None:
        behind_reader, behind_writer = await asyncio.open_connection(host, port)
        self._writers += [writer, behind_writer]

        async def up() -> None:
            while line := await reader.readline():
                self.heard.append(line)
                if (reply := self.replies(line)) is not None:
                    writer.write(reply)
                elif (changed := self.ask(line)) is not None:
                    behind_writer.write(changed)

        async def down() -> None:
            while chunk := await behind_reader.read(65536):
                writer.write(self.answers(chunk))

        tasks = [asyncio.create_task(up()), asyncio.create_task(down())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            # First of all: the end of the block may interrupt what follows.
            behind_writer.transport.abort()
            for each in tasks:
                each.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            with contextlib.suppress(OSError):
                await behind_writer.wait_closed()
