"""Announcements that something may have changed, for pages that update themselves."""

import asyncio
from collections.abc import AsyncIterator

from postroom.store.engine.database import Database


async def announced(database: Database, *channels: str) -> AsyncIterator[None]:
    """Yield at once, and then whenever one of the channels says that something may have changed.

    Many announcements while the reader is busy make one value ready, and none is lost.
    """
    changed = asyncio.Event()
    subscriptions = [database.subscribe(each, lambda _message: changed.set()) for each in channels]
    try:
        while True:
            yield
            await changed.wait()
            changed.clear()
    finally:
        for subscription in subscriptions:
            subscription.close()
