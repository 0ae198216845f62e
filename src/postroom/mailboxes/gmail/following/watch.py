"""Keeps Gmail reporting changes through Pub/Sub: a watch lasts seven days, and is renewed daily."""

import asyncio
from datetime import timedelta

import structlog

from postroom.core.errors import PostroomError
from postroom.mailboxes.gmail.client import GmailClient

log = structlog.get_logger()

EVERY = timedelta(days=1)
AFTER_TROUBLE = timedelta(hours=1)


async def keep_watching(client: GmailClient, topic: str) -> None:
    """Renew the watch until canceled. While that fails, polling still finds everything."""
    while True:
        pause = EVERY
        try:
            watch = await client.watch(topic)
            log.info("connector.watch_renewed", until=watch.expires_at.isoformat())
        except PostroomError as error:
            pause = AFTER_TROUBLE
            log.warning("connector.watch_failed", error=str(error))
        await asyncio.sleep(pause.total_seconds())
