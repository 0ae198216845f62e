"""Waits until the database holds something: looks again whenever one of its channels says that something changed."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

from postroom.store.actions import decisions
from postroom.store.engine.database import Database
from postroom.store.engine.listeners import signalled
from postroom.store.jobs import jobs
from support.patience import PATIENCE_S

T = TypeVar("T")
CHANNELS = (decisions.CHANNEL, jobs.CHANNEL)
LOOK_S = 0.2


async def until(
    database: Database,
    look: Callable[[], Awaitable[T]],
    holds: Callable[[T], object],
    channels: Collection[str] = CHANNELS,
    patience_s: float = PATIENCE_S,
) -> T:
    """What `look` returns, as soon as it `holds`."""
    changed = asyncio.Event()
    subscriptions = [database.subscribe(each, lambda _message: changed.set()) for each in channels]
    try:
        async with asyncio.timeout(patience_s):
            while True:
                changed.clear()
                if holds(found := await look()):
                    return found
                await signalled(changed, LOOK_S)
    finally:
        for subscription in subscriptions:
            subscription.close()


def until_seen(holds: Callable[[], bool]) -> None:
    """Ask again and again: another process does it, and tells nobody here."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.05)
