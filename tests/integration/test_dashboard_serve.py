"""The dashboard on a real socket: the stream as a browser gets it, leaving, and stopping."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from postroom.core.errors import SettingsError
from postroom.interfaces.dashboard.broadcast import UpdateIntervals
from postroom.interfaces.http.serve import serving
from support.patience import PATIENCE_S
from support.scripted_feed import ScriptedFeed, line, overview_application


@asynccontextmanager
async def served(feed: ScriptedFeed, port: int = 0) -> AsyncGenerator[str]:
    app = overview_application(feed, intervals=UpdateIntervals(between_updates=0.01, reread=3600, pulse=3600))
    async with serving(app, host="127.0.0.1", port=port) as address:
        yield address


async def event(parts: AsyncIterator[str]) -> str:
    """The next whole event of a stream."""
    said = ""
    async for part in parts:
        said += part
        if said.endswith("\n\n"):
            return said
    raise AssertionError(f"the stream ended in the middle: {said!r}")


async def test_the_stream_carries_the_board_and_then_its_changes() -> None:
    feed = ScriptedFeed(line(1))
    async with (
        served(feed) as address,
        httpx2.AsyncClient(timeout=PATIENCE_S) as client,
        client.stream("GET", f"{address}/events") as stream,
    ):
        assert stream.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert stream.headers["cache-control"] == "no-store"
        parts = stream.aiter_text()
        first = await event(parts)
        assert "Subject 1" in first
        assert all(part.startswith("data: ") for part in first.split("\n") if part)
        feed.put(line(2, subject="<b>\r\n\r\nevent: forged"))
        assert "&lt;b&gt; event: forged" in await event(parts)


async def test_a_tab_that_leaves_is_noticed_at_once() -> None:
    feed = ScriptedFeed()
    async with served(feed) as address, httpx2.AsyncClient(timeout=PATIENCE_S) as client:
        async with client.stream("GET", f"{address}/events") as stream:
            await anext(stream.aiter_raw())
            assert feed.followers == 1
        async with asyncio.timeout(PATIENCE_S):
            await feed.unfollowed()


async def test_stopping_ends_open_streams_promptly() -> None:
    loop = asyncio.get_running_loop()
    async with httpx2.AsyncClient(timeout=PATIENCE_S) as client:
        async with served(ScriptedFeed()) as address:
            request = client.build_request("GET", f"{address}/events")
            streams = [await client.send(request, stream=True) for _ in range(5)]
            parts = [stream.aiter_raw() for stream in streams]
            for each in parts:
                await anext(each)
            asked = loop.time()
        assert loop.time() - asked < 2
        assert [[part async for part in each] for each in parts] == [[]] * 5
        for stream in streams:
            await stream.aclose()


async def test_the_same_port_can_be_served_again_at_once() -> None:
    async with served(ScriptedFeed()) as first, httpx2.AsyncClient(timeout=PATIENCE_S) as client:
        assert (await client.get(f"{first}/healthz")).status_code == 200
    async with (
        served(ScriptedFeed(), int(first.rpartition(":")[2])) as second,
        httpx2.AsyncClient(timeout=PATIENCE_S) as client,
    ):
        assert second == first
        assert (await client.get(f"{second}/healthz")).status_code == 200


async def test_a_port_that_is_taken_is_an_error_that_says_what_to_do() -> None:
    async with served(ScriptedFeed()) as address:
        port = int(address.rpartition(":")[2])
        with pytest.raises(SettingsError, match=rf"cannot listen on 127\.0\.0\.1:{port} .* choose a free port"):
            async with served(ScriptedFeed(), port):
                pass


async def test_the_server_names_neither_itself_nor_its_version() -> None:
    async with served(ScriptedFeed()) as address, httpx2.AsyncClient(timeout=PATIENCE_S) as client:
        assert "server" not in (await client.get(address)).headers
