"""One reader for all tabs: what they get, how often the feed is read, and how it ends."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from postroom.interfaces.dashboard.broadcast import PULSE, STALLED, Broadcast, UpdateIntervals, as_message
from support.scripted_feed import ScriptedFeed, line

QUIET = UpdateIntervals(between_updates=0, reread=3600, pulse=3600, after_failure=0)


def broadcasting(feed: ScriptedFeed, intervals: UpdateIntervals = QUIET) -> Broadcast:
    async def subjects() -> str:
        return "\n".join(each.subject for each in await feed.lines(50))

    return Broadcast(subjects, feed.changes, intervals)


async def ended(frames: AsyncGenerator[bytes]) -> bool:
    return [frame async for frame in frames] == []


def test_a_text_becomes_one_event_whatever_line_ends_it_has() -> None:
    assert as_message("a\r\nb\rc\n\nevent: x") == b"data: a\ndata: b\ndata: c\ndata: \ndata: event: x\n\n"


async def test_a_tab_gets_the_board_at_once_and_again_after_a_change() -> None:
    feed = ScriptedFeed(line(1))
    async with aclosing(broadcasting(feed).frames()) as tab:
        assert await anext(tab) == b"data: Subject 1\n\n"
        feed.put(line(2))
        assert await anext(tab) == b"data: Subject 2\ndata: Subject 1\n\n"


async def test_many_tabs_and_pages_cost_no_more_reads_than_one() -> None:
    feed = ScriptedFeed(line(1))
    broadcast = broadcasting(feed)
    tabs = [broadcast.frames() for _ in range(30)]
    assert set(await asyncio.gather(*map(anext, tabs))) == {b"data: Subject 1\n\n"}
    assert {await broadcast.board() for _ in range(30)} == {"Subject 1"}
    assert feed.reads == 1
    assert feed.followers == 1
    feed.put(line(2))
    assert set(await asyncio.gather(*map(anext, tabs))) == {b"data: Subject 2\ndata: Subject 1\n\n"}
    assert feed.reads == 2
    for tab in tabs:
        await tab.aclose()


async def test_pages_opened_at_the_same_moment_share_one_read() -> None:
    feed = ScriptedFeed(line(1))
    broadcast = broadcasting(feed)
    assert set(await asyncio.gather(*(broadcast.board() for _ in range(10)))) == {"Subject 1"}
    assert feed.reads == 1
    feed.put(line(1, subject="Changed"))
    assert await broadcast.board() == "Changed"


async def test_a_slow_tab_skips_what_it_missed() -> None:
    feed = ScriptedFeed(line(1))
    async with aclosing(broadcasting(feed).frames()) as tab:
        await anext(tab)
        for reads in range(2, 12):
            feed.put(line(1, subject=f"Version {reads}"))
            await feed.read_so_often(reads)
        feed.put(line(1, subject="Last"))
        await feed.read_so_often(12)
        feed.announce()
        await feed.read_so_often(13)  # so the twelfth has been published
        assert await anext(tab) == b"data: Last\n\n"


async def test_changes_that_come_close_together_become_one_update() -> None:
    feed = ScriptedFeed()
    async with aclosing(broadcasting(feed, UpdateIntervals(between_updates=0.05, reread=3600)).frames()) as tab:
        await anext(tab)
        for seq in range(100):
            feed.put(line(seq))
            await asyncio.sleep(0)
        while b"Subject 99\n" not in await anext(tab):
            pass
        assert feed.reads <= 3


async def test_a_change_that_shows_nothing_new_sends_nothing() -> None:
    feed = ScriptedFeed(line(1))
    async with aclosing(broadcasting(feed).frames()) as tab:
        await anext(tab)
        following = asyncio.ensure_future(anext(tab))
        for reads in (2, 3, 4):
            feed.announce()
            await feed.read_so_often(reads)
        assert not following.done()
        feed.put(line(2))
        assert b"Subject 2" in await following


async def test_a_change_that_nobody_announced_is_found_by_looking_again() -> None:
    feed = ScriptedFeed(line(1))
    async with aclosing(broadcasting(feed, UpdateIntervals(between_updates=0, reread=0.01)).frames()) as tab:
        await anext(tab)
        feed.put_silently(line(1, subject="Changed elsewhere"))
        assert await anext(tab) == b"data: Changed elsewhere\n\n"


async def test_a_quiet_stream_gives_signs_of_life() -> None:
    async with aclosing(broadcasting(ScriptedFeed(), UpdateIntervals(pulse=0.01, reread=3600)).frames()) as tab:
        await anext(tab)
        assert [await anext(tab), await anext(tab)] == [PULSE, PULSE]


async def test_a_feed_that_fails_is_reported_and_the_board_comes_back_with_it() -> None:
    feed = ScriptedFeed(line(1))
    async with aclosing(broadcasting(feed).frames()) as tab:
        board = await anext(tab)
        feed.failure = OSError("gone")
        feed.announce()
        assert await anext(tab) == STALLED
        feed.failure = None
        assert await anext(tab) == board


async def test_an_unwatched_dashboard_follows_nothing() -> None:
    feed = ScriptedFeed(line(1))
    broadcast = broadcasting(feed)
    first, second = broadcast.frames(), broadcast.frames()
    await anext(first)
    await anext(second)
    await first.aclose()
    assert feed.followers == 1
    await second.aclose()
    await feed.unfollowed()
    feed.put(line(1, subject="Changed"))
    async with aclosing(broadcast.frames()) as again:
        assert await anext(again) == b"data: Changed\n\n"


async def test_closing_ends_every_stream_and_admits_no_other() -> None:
    broadcast = broadcasting(ScriptedFeed())
    tabs = [broadcast.frames() for _ in range(3)]
    for tab in tabs:
        await anext(tab)
    broadcast.close()
    assert all(await asyncio.gather(*map(ended, tabs)))
    assert await ended(broadcast.frames())
