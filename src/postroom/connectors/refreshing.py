"""Keeps what a connector has from the switchboard fresh: fetched again and again, sooner when it failed."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import structlog

from postroom.connectors.runtime import pause
from postroom.core.errors import PostroomError
from postroom.vault.masking import masked_urls

log = structlog.get_logger()

EVERY = timedelta(minutes=15)
SOONER = timedelta(minutes=1)


async def keep_fresh(
    what: str,
    refresh: Callable[[], Awaitable[object]],
    stop: asyncio.Event,
    *,
    every: timedelta = EVERY,
    sooner: timedelta = SOONER,
) -> None:
    """Refreshes at once and then every so often, until `stop`. A failure is logged, and what is there stays."""
    while not stop.is_set():
        try:
            await refresh()
        except (PostroomError, OSError) as error:
            log.warning("connector.not_refreshed", what=what, error=masked_urls(f"{type(error).__name__}: {error}"))
            await pause(stop, sooner)
        else:
            await pause(stop, every)
