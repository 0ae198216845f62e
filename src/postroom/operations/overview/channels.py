"""Hear of changes that are announced on channels of the database."""

import asyncio
from collections.abc import AsyncIterator, Collection

from postroom.store.engine.database import Database


async def changes_on(database: Database, channels: Collection[str]) -> AsyncIterator[None]:
    """Yield at once, and then whenever something may have changed since the last value was taken.

    Changes are coalesced: many of them while the reader is busy make one value ready, and none is lost. Changes by
    other processes may go unannounced.
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
