"""Waiting for changes: what pages show is read again as soon as something of it may have changed."""

import asyncio
from collections.abc import AsyncIterator

from postroom.store import acceptance, decisions
from postroom.store.engine.database import Database


async def mail_changes(database: Database) -> AsyncIterator[None]:
    """Yield at once, and then whenever mail arrived, was decided on or acted on since the last value was taken."""
    changed = asyncio.Event()
    channels = (acceptance.CHANNEL, decisions.CHANNEL)
    subscriptions = [database.subscribe(each, lambda _message: changed.set()) for each in channels]
    try:
        while True:
            yield
            await changed.wait()
            changed.clear()
    finally:
        for subscription in subscriptions:
            subscription.close()
