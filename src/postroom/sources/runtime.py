"""Shared by all connectors: their health, heartbeats that report it, and interruptible pauses."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

import structlog

from postroom.core.errors import PostroomError, Refused
from postroom.core.heartbeat import SCHEMA
from postroom.sources.switchboard_client import SwitchboardClient
from postroom.vault.masking import masked_urls

log = structlog.get_logger()

State = Literal["healthy", "degraded", "error"]

# A little more often than every two minutes: after that a connector counts as stale.
EVERY = timedelta(seconds=110)
# A change of state is reported at once, but not more often than this.
SHORTEST = timedelta(seconds=2)
LONGEST_MESSAGE = 500


class ConnectorHealth:
    """The health of a connector: set by the connector, reported by its heartbeat."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self.started_at = clock()
        self.state: State = "healthy"
        self.changed = asyncio.Event()
        """Set when the state changes; cleared by the heartbeat that reports it."""
        self.error_message: str | None = None
        self.counters: Counter[str] = Counter()
        self.cursor: str | None = None
        self.cursor_at: datetime | None = None
        self.contacts_generated_at: Callable[[], datetime | None] = lambda: None
        """When the connector's contacts were generated, if it has any."""

    def await_first_read(self, reason: str) -> None:
        """Count as degraded until the source has been read for the first time."""
        self.state, self.error_message = "degraded", reason

    def well(self) -> None:
        self._become("healthy")
        self.error_message = None

    def report_problem(self, state: State, error: Exception) -> None:
        """Set the state and the text of the error, without passwords."""
        self._become(state)
        self.error_message = masked_urls(f"{type(error).__name__}: {error}")[:LONGEST_MESSAGE]

    def reach(self, cursor: str) -> None:
        """Record that everything up to this cursor has been ingested."""
        self.cursor, self.cursor_at = cursor, self._clock()

    def _become(self, state: State) -> None:
        if state != self.state:
            self.state = state
            self.changed.set()


class Connector(NamedTuple):
    """The identity of a connector: its type, the endpoint it serves, and which of possibly several processes."""

    connector_type: str
    endpoint_identity: str
    instance_id: str
    version: str


@dataclass(eq=False, slots=True)
class Heartbeats:
    """Reports to the switchboard periodically. A failed report is logged; the next one contains the same."""

    switchboard: SwitchboardClient
    connector: Connector
    health: ConnectorHealth
    clock: Callable[[], datetime]

    def report(self) -> dict[str, Any]:
        health, now = self.health, self.clock()
        health.changed.clear()
        status: dict[str, Any] = {
            "state": health.state,
            "uptime_s": max(0.0, (now - health.started_at).total_seconds()),
        }
        if health.error_message is not None:
            status["error_message"] = health.error_message
        checkpoint: dict[str, str] = {}
        if health.cursor is not None and health.cursor_at is not None:
            checkpoint = {"cursor": health.cursor, "updated_at": health.cursor_at.isoformat()}
        if (generated_at := health.contacts_generated_at()) is not None:
            checkpoint["contacts_generated_at"] = generated_at.isoformat()
        return {
            "schema_version": SCHEMA,
            "connector": self.connector._asdict(),
            "status": status,
            "counters": dict(health.counters),
            "checkpoint": checkpoint or None,
            "sent_at": now.isoformat(),
        }

    async def beat(self) -> None:
        await self.switchboard.heartbeat(self.report())

    async def run(self, every: timedelta = EVERY, shortest: timedelta = SHORTEST) -> None:
        """Report forever: after `every`, and when the state has changed."""
        while True:
            await asyncio.sleep(min(shortest, every).total_seconds())
            await pause(self.health.changed, max(every - shortest, timedelta(0)))
            try:
                await self.beat()
            except Exception as error:
                log.warning("connector.heartbeat_failed", error=masked_urls(f"{type(error).__name__}: {error}"))

    async def introduce(self) -> None:
        """Send the first report. Raises Refused if the token is refused, so that it is seen at the start."""
        try:
            await self.beat()
        except Refused:
            raise
        except (PostroomError, OSError) as error:
            log.warning("connector.heartbeat_failed", error=masked_urls(f"{type(error).__name__}: {error}"))


@contextlib.asynccontextmanager
async def sending_heartbeats(
    heartbeats: Heartbeats, every: timedelta = EVERY, shortest: timedelta = SHORTEST
) -> AsyncGenerator[None]:
    """Send heartbeats while the block runs. Call `introduce` first."""
    task = asyncio.create_task(heartbeats.run(every, shortest), name="heartbeat")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


async def pause(stop: asyncio.Event, length: timedelta) -> None:
    """Wait for this long, or until `stop`."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(length.total_seconds()):
            await stop.wait()


async def introduce(heartbeats: Heartbeats) -> None:
    """Send the first report, and fail at once if the token is refused. The error leaves out the header's name: text
    after that name is taken for a secret and hidden wherever it is printed.
    """
    try:
        await heartbeats.introduce()
    except Refused as refused:
        reason = str(refused).partition(": ")[2]
        raise Refused(f"the switchboard does not accept the token in POSTROOM_CONNECTOR_TOKEN: {reason}") from None
