"""A connector on a real Redis and a real switchboard, with faults before and behind the switchboard."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from random import Random
from typing import Any

from redis.asyncio import Redis

from postroom.core.errors import PostroomError
from postroom.core.jobs.retry import RetryPolicy
from postroom.core.roles import Principal, Role
from postroom.interfaces.http.mcp.mcp_server import build_server
from postroom.interfaces.http.services import Services
from postroom.sources.mcp_switchboard import McpSwitchboard, switchboard_within
from postroom.sources.redis_stream.source import RedisSource
from postroom.sources.redis_stream.stream import RedisStream, connect
from postroom.sources.runtime import ConnectorHealth, State
from postroom.sources.switchboard_client import Receipt
from postroom.store.engine.database import Database
from postroom.system.wall_clock import wall_clock
from support.patience import PATIENCE_S
from support.redis import RedisServer
from support.switchboard import services_on

STREAM, GROUP = "events", "postroom"
# Redis tells nobody when an entry was acknowledged; who asks without a pause takes the processor of who does it.
LOOK_AGAIN_S = 0.02
IDENTITY = f"redis:{STREAM}"
SOON = timedelta(milliseconds=20)
AT_ONCE = RetryPolicy(base=timedelta(milliseconds=2), cap=timedelta(milliseconds=20))

Hook = Callable[[], Awaitable[None]]


async def _nothing() -> None: ...


class Switchboard:
    """The connector's own client, over MCP in memory. What happens before and after a call is the test's."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.before: Hook = _nothing
        self.after: Hook = _nothing
        self.outcomes: list[Receipt | PostroomError] = []
        self.batches: list[int] = []
        self.states: list[str] = []
        self._news = asyncio.Event()
        self._client = self.client()

    def client(self) -> McpSwitchboard:
        return switchboard_within(build_server(self.services, Principal(Role.CONNECTOR, IDENTITY)))

    @property
    def receipts(self) -> list[Receipt]:
        return [each for each in self.outcomes if isinstance(each, Receipt)]

    async def ingest(self, envelope: Mapping[str, Any]) -> Receipt:
        return await self._client.ingest(envelope)

    async def ingest_batch(self, envelopes: Sequence[Mapping[str, Any]]) -> list[Receipt | PostroomError]:
        self.batches.append(len(envelopes))
        self._tell()
        await self.before()
        outcomes = await self._client.ingest_batch(envelopes)
        self.outcomes += outcomes
        self._tell()
        await self.after()
        return outcomes

    async def changes(self, reports: Sequence[Mapping[str, Any]]) -> None:
        await self._client.changes(reports)

    async def heartbeat(self, report: Mapping[str, Any]) -> None:
        await self._client.heartbeat(report)
        self.states.append(report["status"]["state"])
        self._tell()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Looks again whenever the connector has called."""
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                await self._news.wait()

    async def kept(self) -> list[dict[str, Any]]:
        """All that waits in the gateway queue, as envelopes; takes it out of the queue."""
        found: list[dict[str, Any]] = []
        while deliveries := await self.services.buffer.next("gateway", 100):
            found += [each.envelope for each in deliveries]
        return found

    def _tell(self) -> None:
        told, self._news = self._news, asyncio.Event()
        told.set()


class WatchedHealth(ConnectorHealth):
    """ConnectorHealth that tell when they get worse."""

    def __init__(self) -> None:
        super().__init__(wall_clock)
        self._worse: dict[State, asyncio.Event] = {"degraded": asyncio.Event(), "error": asyncio.Event()}

    def report_problem(self, state: State, error: Exception) -> None:
        super().report_problem(state, error)
        self._worse[state].set()

    async def until_reported(self, state: State) -> str:
        """Waits until it says so; returns its words."""
        async with asyncio.timeout(PATIENCE_S):
            await self._worse[state].wait()
        return self.error_message or ""


class Running:
    """A connector at work in this process."""

    def __init__(self, source: RedisSource, health: WatchedHealth) -> None:
        self.health = health
        self._stop = asyncio.Event()
        self._joined = asyncio.Event()
        self.task = asyncio.create_task(source.run(self._stop, self._joined.set))

    async def joined(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await self._joined.wait()

    async def stop(self) -> None:
        """In good order: what was accepted is acknowledged."""
        self._stop.set()
        async with asyncio.timeout(PATIENCE_S):
            await self.task

    async def drop(self) -> None:
        """At once, wherever it is, as a crash would."""
        self.task.cancel()
        await asyncio.wait({self.task})


class RedisSetup:
    """One Redis and one switchboard, and the connectors between."""

    def __init__(self, server: RedisServer, redis: Redis, switchboard: Switchboard, url: str | None = None) -> None:
        self.server = server
        self.url = url or server.url
        self.redis = redis
        self.switchboard = switchboard
        self._stack = contextlib.AsyncExitStack()

    async def start(
        self,
        consumer: str = "one",
        claim_after: timedelta = timedelta(seconds=60),
        switchboard: Switchboard | None = None,
        batch: int = 100,
        identity: str = IDENTITY,
    ) -> Running:
        client = await self._stack.enter_async_context(connect(self.url))
        health = WatchedHealth()
        source = RedisSource(
            RedisStream(client, STREAM, GROUP, consumer),
            switchboard or self.switchboard,
            health,
            identity=identity,
            clock=wall_clock,
            rng=Random(1),
            batch=batch,
            claim_after=claim_after,
            backoff=AT_ONCE,
        )
        running = Running(source, health)
        self._stack.push_async_callback(running.drop)
        return running

    async def add(self, count: int, start: int = 0) -> list[str]:
        """Entries with texts of their own; returns their ids."""
        async with self.redis.pipeline(transaction=False) as pipeline:
            for number in range(start, start + count):
                pipeline.xadd(STREAM, {"event": "build.done", "text": f"text {number}"})
            return [each.decode() for each in await pipeline.execute()]

    async def pending(self) -> int:
        summary: Any = await self.redis.xpending(STREAM, GROUP)
        return summary["pending"]

    async def drained(self) -> None:
        """Waits until nothing is pending: Redis answers each question when it has done what was asked before."""
        async with asyncio.timeout(PATIENCE_S):
            while await self.pending():  # noqa: ASYNC110
                await asyncio.sleep(LOOK_AGAIN_S)

    async def refused(self, count: int) -> list[dict[str, str]]:
        """Waits until so many were moved aside."""
        found: list[dict[str, str]] = []
        async with asyncio.timeout(PATIENCE_S):
            last: str | bytes = "0"
            while len(found) < count:
                answer: Any = await self.redis.xread({f"{STREAM}:refused": last}, block=0)
                for _, entries in answer:
                    last = entries[-1][0]
                    found += [_decoded(fields) for _, fields in entries]
        return found

    async def close(self) -> None:
        await self._stack.aclose()


def _decoded(fields: Mapping[bytes, bytes]) -> dict[str, str]:
    return {name.decode(): value.decode("utf-8", "replace") for name, value in fields.items()}


@contextlib.asynccontextmanager
async def opened_redis_setup(server: RedisServer, database: Database) -> AsyncGenerator[RedisSetup]:
    async with Redis.from_url(server.url, socket_timeout=None) as redis:
        setup = RedisSetup(server, redis, Switchboard(services_on(database, wall_clock)))
        try:
            yield setup
        finally:
            await setup.close()


def event_ids(envelopes: list[dict[str, Any]]) -> list[str]:
    return sorted(each["event"]["external_event_id"] for each in envelopes)


FOREIGN = {"schema_version": "ingest.v1", "source": {"endpoint_identity": "redis:other"}}


def whole(event_id: str) -> dict[str, Any]:
    return {
        "schema_version": "ingest.v1",
        "source": {"channel": "redis", "provider": "redis", "endpoint_identity": IDENTITY},
        "event": {"external_event_id": event_id, "observed_at": "2026-11-15T08:00:00Z"},
        "sender": {"identity": "ci"},
        "payload": {"raw": {}, "normalized_text": event_id},
        "control": {"idempotency_key": "the same"},
    }


UNKNOWN_KEY = {**whole("c"), "colour": "red"}
