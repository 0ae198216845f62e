"""The Gmail client against servers that answer as no Google would: a clear error each time, soon, in little memory."""

import asyncio
import gzip
import traceback
import tracemalloc
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, closing, suppress
from datetime import timedelta

import httpx2
import pytest

from postroom.mailboxes.gmail.client import GmailClient
from postroom.mailboxes.gmail.errors import (
    AnswerTooLarge,
    BadAnswer,
    EndlessPages,
    GmailError,
    GmailTokenUnavailable,
    NotFromGmail,
    ServerError,
    Unreachable,
)
from support.gates import owners_client
from support.patience import PATIENCE_S

TOKEN = "ya29.very-secret-token"
MAIL = "The doctor says it is only a cold"

Behaviour = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Server:
    """Answers every request as it is told, and keeps the requests."""

    def __init__(self, behave: Behaviour) -> None:
        self.requests: list[bytes] = []
        self._behave = behave
        self._answering: set[asyncio.Task[None]] = set()

    def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._answering.add(asyncio.create_task(self._answer(reader, writer)))

    async def stop(self) -> None:
        for task in self._answering:
            task.cancel()
        await asyncio.gather(*self._answering, return_exceptions=True)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer), suppress(OSError, asyncio.IncompleteReadError):
            self.requests.append(await reader.readuntil(b"\r\n\r\n"))
            await self._behave(reader, writer)


@asynccontextmanager
async def serving(behave: Behaviour, deadline: float = 30) -> AsyncGenerator[tuple[GmailClient, Server]]:
    async def token() -> str:
        return TOKEN

    server = Server(behave)
    listener = await asyncio.start_server(server, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    async with listener, httpx2.AsyncClient(trust_env=False, timeout=PATIENCE_S, follow_redirects=True) as http:
        yield owners_client(http, url, token, deadline=timedelta(seconds=deadline)), server
        await server.stop()


def saying(content: bytes, status: str = "200 OK", headers: str = "", length: int | None = None) -> Behaviour:
    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        size = len(content) if length is None else length
        head = f"HTTP/1.1 {status}\r\nConnection: close\r\n{headers}Content-Length: {size}\r\n\r\n"
        writer.write(head.encode() + content)
        await writer.drain()

    return behave


async def failure(client: GmailClient) -> GmailError:
    """The error of a read, which tells neither mail nor token, and whose text says what to do."""
    with pytest.raises(GmailError) as caught:
        await client.get_message("18c2")
    told = "".join(traceback.format_exception(caught.value))
    assert TOKEN not in told
    assert MAIL not in told
    assert ";" in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("behave", "expected"),
    [
        (saying(b""), NotFromGmail),
        (saying(f"<html>{MAIL}</html>".encode()), NotFromGmail),
        (saying(b'{"id": "18c2", "snippet": "' + MAIL.encode()), NotFromGmail),
        (saying(b"[" * 100_000), NotFromGmail),
        (saying(b'{"id": "18c2"}'), BadAnswer),
        (saying(b'{"id": ["' + MAIL.encode() + b'"], "threadId": 5}'), BadAnswer),
        (saying(b'{"id": "1", "threadId": "1", "historyId": "' + b"9" * 10_000 + b'"}'), BadAnswer),
        (saying(b"<html>Bad gateway</html>", "502 Bad Gateway"), ServerError),
        (saying(b'{"id": "18c2"}', length=1000), Unreachable),
        (saying(gzip.compress(b'{"id": "18c2"}')[:20], headers="Content-Encoding: gzip\r\n"), NotFromGmail),
        (saying(b"no gzip at all", headers="Content-Encoding: gzip\r\n"), NotFromGmail),
        (saying(b"", "99 Nonsense"), Unreachable),
    ],
    ids=[
        "nothing", "HTML", "half a JSON", "deep JSON", "fields missing", "fields of the wrong kind", "a long number",
        "an HTML error", "broken off", "broken compression", "false compression", "no HTTP",
    ],
)  # fmt: skip
async def test_an_answer_that_is_invalid_is_a_clear_error(behave: Behaviour, expected: type[GmailError]) -> None:
    async with serving(behave) as (client, _):
        assert type(await failure(client)) is expected


@pytest.mark.parametrize("packings", [1, 2])
async def test_an_answer_that_unpacks_to_gigabytes_is_given_up_in_time(packings: int) -> None:
    bomb = gzip.compress(b" " * (256 << 20), compresslevel=1)
    headers = "Content-Encoding: gzip\r\n"
    if packings == 2:
        bomb, headers = gzip.compress(bomb), "Content-Encoding: gzip, gzip\r\n"
    async with serving(saying(bomb, headers=headers)) as (client, _):
        tracemalloc.start()
        try:
            with pytest.raises(AnswerTooLarge):
                await client.list_labels()
            assert tracemalloc.get_traced_memory()[1] < 48 << 20
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"])
async def test_a_redirection_is_not_followed_and_the_token_goes_nowhere_else(status: str) -> None:
    async with serving(saying(b"", status, "Location: /elsewhere\r\n")) as (client, server):
        assert isinstance(await failure(client), NotFromGmail)
        assert len(server.requests) == 1


async def test_an_answer_that_only_drips_is_given_up() -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        # Each byte is well within any timeout of the HTTP client's.
        while not writer.is_closing():
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.01)

    async with serving(drip, deadline=0.3) as (client, _):
        error = await failure(client)
    assert isinstance(error, Unreachable)
    assert "not complete after" in str(error)


async def test_a_server_that_says_nothing_is_given_up() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with serving(silent, deadline=0.2) as (client, server):
        assert isinstance(await failure(client), Unreachable)
        assert len(server.requests) == 1


async def test_pages_that_lead_in_a_circle_end() -> None:
    async with serving(saying(b'{"messages": [{"id": "1", "threadId": "1"}], "nextPageToken": "same"}')) as (
        client,
        server,
    ):
        with pytest.raises(EndlessPages):
            async for _ in client.message_pages():
                pass
        assert len(server.requests) == 2
    async with serving(saying(b'{"historyId": "9", "nextPageToken": "same"}')) as (client, _):
        with pytest.raises(EndlessPages):
            async for _ in client.history_pages(1):
                pass


@pytest.mark.parametrize("content", [b"<html>", b"--b\r\n\r\n", b""])
async def test_a_batch_that_is_answered_with_nonsense_is_a_clear_error(content: bytes) -> None:
    async with serving(saying(content, headers="Content-Type: text/html\r\n")) as (client, _):
        with pytest.raises(NotFromGmail):
            await client.get_messages(["18c2"])
    async with serving(saying(content, headers="Content-Type: multipart/mixed; boundary=b\r\n")) as (client, _):
        assert [type(each) for each in await client.get_messages(["18c2", "18c3"])] == [Unreachable, Unreachable]


@pytest.mark.parametrize("token", ["", "ya29 secret", "ya29\r\nX-Other: yes", "ya29ü"])
async def test_a_token_that_cannot_be_one_is_never_sent_nor_shown(token: str) -> None:
    async def give() -> str:
        return token

    async with httpx2.AsyncClient(trust_env=False, timeout=PATIENCE_S) as http:
        with pytest.raises(GmailTokenUnavailable) as caught:
            await owners_client(http, "http://127.0.0.1:9", give).get_profile()
    assert not token or token not in "".join(traceback.format_exception(caught.value))
