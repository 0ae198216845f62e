"""Compose the Redis connector: its consumer, switchboard and heartbeat, start and end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, TypedDict, Unpack

from postroom import __version__
from postroom.compose.connector import connector_token, exporting_alone, heartbeat_every, until_stopped
from postroom.core.errors import SettingsError

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from postroom.settings.reading import Settings


class RedisReading(TypedDict):
    """The stream, group and consumer; `ready` is called with the identity once the group is joined."""

    stream: str
    group: str
    consumer: str
    identity: str
    batch: int
    claim_after: timedelta
    ready: Callable[[str], None]


async def run_redis_source(settings: Settings, stop: asyncio.Event, **reading: Unpack[RedisReading]) -> None:
    """Read the stream until `stop`. Deliveries in progress may finish; unfinished entries stay pending in Redis."""
    from postroom.sources.mcp_switchboard import switchboard_at
    from postroom.sources.redis_stream.source import RedisSource
    from postroom.sources.redis_stream.stream import RedisStream
    from postroom.sources.runtime import Connector, ConnectorHealth, Heartbeats, introduce, sending_heartbeats
    from postroom.system.wall_clock import wall_clock

    identity, consumer = reading["identity"], reading["consumer"]
    token = connector_token(settings, identity)
    health = ConnectorHealth(wall_clock)
    async with (
        exporting_alone(settings),
        _redis(settings) as redis,
        switchboard_at(settings.connector.switchboard_url, token) as switchboard,
    ):
        source = RedisSource(
            RedisStream(redis, reading["stream"], reading["group"], consumer),
            switchboard,
            health,
            identity=identity,
            clock=wall_clock,
            rng=Random(),  # noqa: S311 (jitter)
            batch=reading["batch"],
            claim_after=reading["claim_after"],
        )
        heartbeats = Heartbeats(
            switchboard, Connector("redis-stream", identity, consumer, __version__), health, wall_clock
        )
        await introduce(heartbeats)
        async with sending_heartbeats(heartbeats, heartbeat_every(settings)):
            await until_stopped(source.run(stop, lambda: reading["ready"](identity)), stop)


def _redis(settings: Settings) -> Redis:
    from postroom.sources.redis_stream.stream import connect

    if settings.redis.url is None:
        raise SettingsError("redis.url is not set; give --url, or POSTROOM_REDIS_URL if it contains a password")
    try:
        return connect(settings.redis.url.get_secret_value())
    except ValueError:  # its text may quote the address with its password
        raise SettingsError("redis.url is not an address; write it like redis://user:password@host:6379/0") from None
