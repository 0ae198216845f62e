"""One consumer of one Redis stream: typed wrappers of the few commands we use.

Replies are taken raw, in the older protocol (RESP2), whatever the URL says: the client's own parsing drops repeated
fields and differs between versions.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple, cast

import orjson
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ResponseError

from postroom.sources.redis_stream.entry import Entry, Fields, texts_of

NEW = ">"
FIRST = "0-0"
LONGEST_BLOCK = timedelta(seconds=5)
TIMEOUT_S = LONGEST_BLOCK.total_seconds() + 10
MOST_COPIED = 2_000
# With its own timeout the client uses `asyncio.wait_for`, which loses cancellations on Python 3.11.
OUR_OPTIONS: dict[str, Any] = {"protocol": 2, "decode_responses": False, "socket_timeout": None}

# A script stops at its first error, while MULTI continues with the next command: if the copy failed (no memory, or a
# key of another type), MULTI would still acknowledge the entry. The script copies only entries that are still pending,
# so that two consumers that both hold the entry leave one copy.
_REFUSE = """
if #redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[2], ARGV[2], 1) == 0 then return 0 end
redis.call('XADD', KEYS[2], '*', unpack(ARGV, 3))
return redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
"""


class Claimed(NamedTuple):
    """Entries claimed from silent consumers; `cursor` is where to continue, FIRST at the end."""

    cursor: str
    entries: list[Entry]


def connect(url: str) -> Redis:
    """A client that connects on first use, and does not retry by itself.

    Options must be given when the client is created: it derives other options from the protocol version, and with one
    set later it never connects. Options in the URL override ours, so ours are removed from the URL.
    """
    client = Redis.from_url(_without_our_options(url), retry=Retry(NoBackoff(), 0), **OUR_OPTIONS)  # pyright: ignore[reportUnknownMemberType]
    for command in ("XREADGROUP", "XAUTOCLAIM"):
        client.set_response_callback(command, cast("Any", _as_it_is))
    return client


def _without_our_options(url: str) -> str:
    address, _, query = url.partition("?")
    kept = [option for option in query.split("&") if option and option.partition("=")[0] not in OUR_OPTIONS]
    return f"{address}?{'&'.join(kept)}" if kept else address


def _as_it_is(answer: Any, **_options: Any) -> Any:
    return answer


class RedisStream:
    """The stream as seen by one consumer of one group."""

    def __init__(self, client: Redis, name: str, group: str, consumer: str) -> None:
        self.name = name
        self.refused = f"{name}:refused"
        self.group = group
        self.consumer = consumer
        self._client = client

    async def ensure_group(self) -> None:
        """Create the group if it is missing, starting at the first entry, so that existing entries are not lost."""
        try:
            await self._command("XGROUP", "CREATE", self.name, self.group, FIRST, "MKSTREAM")
        except ResponseError as error:
            if not str(error).startswith("BUSYGROUP"):
                raise

    async def fresh(self, most: int, block: timedelta) -> list[Entry]:
        """Read new entries, which become pending for this consumer; wait up to LONGEST_BLOCK for the first."""
        wait = min(block, LONGEST_BLOCK)
        return await self._read(most, NEW, "BLOCK", max(1, round(wait.total_seconds() * 1000)))

    async def pending(self, after: str, most: int) -> list[Entry]:
        """Entries that were delivered to this consumer and not acknowledged."""
        return await self._read(most, after)

    async def claim(self, cursor: str, idle: timedelta, most: int) -> Claimed:
        """Claim entries that other consumers have held for longer than `idle`."""
        idle_ms = round(idle.total_seconds() * 1000)
        answer = await self._command("XAUTOCLAIM", self.name, self.group, self.consumer, idle_ms, cursor, "COUNT", most)
        return Claimed(answer[0].decode(), _entries(answer[1]))

    async def ack(self, ids: Sequence[str]) -> None:
        if ids:
            await self._command("XACK", self.name, self.group, *ids)

    async def refuse(self, entry_id: str, fields: Fields, reason: str, now: datetime) -> None:
        """Copy an entry, with the reason, to the stream of refused entries; then acknowledge it."""
        about = ("refused_id", entry_id, "refused_reason", reason, "refused_at", now.isoformat())
        copied = [part for field in _few(fields) for part in field]
        await self._command("EVAL", _REFUSE, 2, self.name, self.refused, self.group, entry_id, *about, *copied)

    async def _read(self, most: int, start: str, *options: str | int) -> list[Entry]:
        reader = ("GROUP", self.group, self.consumer)
        answer = await self._command("XREADGROUP", *reader, "COUNT", most, *options, "STREAMS", self.name, start)
        return _entries(answer[0][1]) if answer else []

    async def _command(self, *words: str | int | bytes) -> Any:
        run = cast("Callable[..., Awaitable[Any]]", self._client.execute_command)  # pyright: ignore[reportUnknownMemberType]
        async with asyncio.timeout(TIMEOUT_S):
            return await run(*words)


def _few(fields: Fields) -> Fields:
    """The fields, or very many of them as one in JSON: a script can pass on only a few thousand values."""
    return fields if len(fields) <= MOST_COPIED else ((b"refused_fields", orjson.dumps(texts_of(fields))),)


def _entries(answer: list[Any]) -> list[Entry]:
    """Parse entries. Servers before 7.0 return nil, without an id, for entries deleted meanwhile: those are skipped."""
    return [Entry(each[0].decode(), _fields(each[1])) for each in answer if each is not None]


def _fields(flat: list[bytes] | None) -> Fields | None:
    if flat is None:
        return None
    return tuple(zip(flat[::2], flat[1::2], strict=True))
