"""Periodic refreshing of what a connector fetches from the switchboard, sooner after a failure."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import structlog

from postroom.core.errors import PostroomError
from postroom.sources.runtime import pause
from postroom.vault.masking import masked_urls

log = structlog.get_logger()

EVERY = timedelta(minutes=15)
RETRY_AFTER = timedelta(minutes=1)


async def keep_fresh(
    what: str,
    refresh: Callable[[], Awaitable[object]],
    stop: asyncio.Event,
    *,
    every: timedelta = EVERY,
    retry_after: timedelta = RETRY_AFTER,
) -> None:
    """Refresh at once and then periodically, until `stop`. A failure is logged, and the old data is kept."""
    while not stop.is_set():
        try:
            await refresh()
        except (PostroomError, OSError) as error:
            log.warning("connector.not_refreshed", what=what, error=masked_urls(f"{type(error).__name__}: {error}"))
            await pause(stop, retry_after)
        else:
            await pause(stop, every)
