"""The Redis connector put together: its consumer, its switchboard, its heartbeat, and how it starts and ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from postroom import __version__
from postroom.core.errors import Refused, SettingsError

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from postroom.connectors.runtime import Heart
    from postroom.settings import Settings

DRAIN = timedelta(seconds=10)


class Reading(TypedDict):
    """What is read, as whom, and how; `ready` is called with the identity when the group is joined."""

    stream: str
    group: str
    consumer: str
    identity: str
    batch: int
    claim_after: timedelta
    ready: Callable[[str], None]


async def run_redis_source(settings: Settings, stop: asyncio.Event, **reading: Unpack[Reading]) -> None:
    """Reads the stream until `stop`. What is being handed in then has DRAIN to end; it is pending in Redis anyway."""
    from postroom.connectors.mcp_switchboard import switchboard_at
    from postroom.connectors.redis_stream.source import RedisSource
    from postroom.connectors.redis_stream.stream import RedisStream
    from postroom.connectors.runtime import Connector, Heart, Vitals, beating
    from postroom.store.clock import wall_clock

    if settings.connector.token is None:
        command = f"postroom token create --role connector --identity {reading['identity']}"
        raise SettingsError(f"connector.token is not set; put what `{command}` prints into POSTROOM_CONNECTOR_TOKEN")
    identity, consumer = reading["identity"], reading["consumer"]
    vitals = Vitals(wall_clock)
    async with (
        _redis(settings) as redis,
        switchboard_at(settings.connector.switchboard_url, settings.connector.token.get_secret_value()) as switchboard,
    ):
        source = RedisSource(
            RedisStream(redis, reading["stream"], reading["group"], consumer),
            switchboard,
            vitals,
            identity=identity,
            clock=wall_clock,
            rng=Random(),  # noqa: S311 (jitter)
            batch=reading["batch"],
            claim_after=reading["claim_after"],
        )
        heart = Heart(switchboard, Connector("redis-stream", identity, consumer, __version__), vitals, wall_clock)
        await _introduce(heart)
        async with beating(heart):
            await _until_stopped(source.run(stop, lambda: reading["ready"](identity)), stop)


async def _introduce(heart: Heart) -> None:
    """A token that is refused is told at once, in the switchboard's words but without the header's name: what follows
    that, wherever it is printed, is taken for a secret and hidden.
    """
    try:
        await heart.introduce()
    except Refused as refused:
        told = str(refused).partition(": ")[2]
        raise Refused(f"the switchboard does not take what POSTROOM_CONNECTOR_TOKEN holds: {told}") from None


def _redis(settings: Settings) -> Redis:
    from postroom.connectors.redis_stream.stream import connect

    if settings.redis.url is None:
        raise SettingsError("redis.url is not set; give --url, or POSTROOM_REDIS_URL when it holds a password")
    try:
        return connect(settings.redis.url.get_secret_value())
    except ValueError:  # its text may quote the address, and that holds a password
        raise SettingsError("redis.url is no address; write it like redis://user:password@host:6379/0") from None


async def _until_stopped(work: Coroutine[Any, Any, None], stop: asyncio.Event) -> None:
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({working}, timeout=DRAIN.total_seconds())
    finally:
        for task in (working, stopping):
            task.cancel()
        await asyncio.wait({working, stopping})
    if not working.cancelled():
        working.result()
