"""The pause between two rounds: ended by hints, which are pulled only while they are useful."""

import asyncio
from datetime import timedelta

from postroom.core.errors import PostroomError
from postroom.mailboxes.following.hints import RoundPause
from support.patience import PATIENCE_S

LONG = timedelta(hours=1)


class Chatty:
    """There is always one more hint."""

    problem: PostroomError | None = None

    def __init__(self) -> None:
        self.asked = 0

    async def wait(self) -> None:
        self.asked += 1
        await asyncio.sleep(0)


async def _everybody_had_a_turn() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_while_a_hint_waits_for_its_round_no_more_are_asked_for() -> None:
    hints = Chatty()
    waiting = RoundPause(hints)
    async with waiting.listening():
        await _everybody_had_a_turn()
        assert hints.asked == 1


async def test_once_a_round_follows_the_next_hint_is_asked_for() -> None:
    hints = Chatty()
    waiting = RoundPause(hints)
    async with waiting.listening():
        for rounds in range(1, 4):
            await waiting.wait(LONG, asyncio.Event())
            await _everybody_had_a_turn()
            assert hints.asked == rounds + 1


async def test_what_was_hinted_during_a_round_makes_the_next_follow_at_once() -> None:
    waiting = RoundPause(Chatty())
    async with waiting.listening(), asyncio.timeout(PATIENCE_S):
        await waiting.wait(LONG, asyncio.Event())
        await _everybody_had_a_turn()
        await waiting.wait(LONG, asyncio.Event())
