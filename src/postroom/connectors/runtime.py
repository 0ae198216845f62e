"""What every connector needs besides its source: how it is doing, a heartbeat that tells so, pauses that end early."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

import structlog

from postroom.connectors.switchboard_client import SwitchboardClient
from postroom.core.errors import PostroomError, Refused
from postroom.core.heartbeat import SCHEMA
from postroom.vault.masking import masked_urls

log = structlog.get_logger()

State = Literal["healthy", "degraded", "error"]

# A little more often than every two minutes, after which a connector counts as stale.
EVERY = timedelta(seconds=110)
# A change of state is told before that, but not more often than this.
SHORTEST = timedelta(seconds=2)
LONGEST_MESSAGE = 500


class ConnectorHealth:
    """How a connector is doing: written by the connector, read by its heartbeat."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self.started_at = clock()
        self.state: State = "healthy"
        self.changed = asyncio.Event()
        """Set when the state becomes another; cleared by the heartbeat that tells it."""
        self.error_message: str | None = None
        self.counters: Counter[str] = Counter()
        self.cursor: str | None = None
        self.cursor_at: datetime | None = None
        self.contacts_generated_at: Callable[[], datetime | None] = lambda: None
        """When the contacts that the connector goes by were made, where it has any."""

    def await_first_read(self, reason: str) -> None:
        """For a source that is to show that it can read before it counts as healthy."""
        self.state, self.error_message = "degraded", reason

    def well(self) -> None:
        self._become("healthy")
        self.error_message = None

    def report_problem(self, state: State, error: Exception) -> None:
        """The error's own words, without passwords."""
        self._become(state)
        self.error_message = masked_urls(f"{type(error).__name__}: {error}")[:LONGEST_MESSAGE]

    def reach(self, cursor: str) -> None:
        """Everything up to here is with the switchboard."""
        self.cursor, self.cursor_at = cursor, self._clock()

    def _become(self, state: State) -> None:
        if state != self.state:
            self.state = state
            self.changed.set()


class Connector(NamedTuple):
    """Who reports: the kind of connector, the endpoint it serves, and which process of possibly several."""

    connector_type: str
    endpoint_identity: str
    instance_id: str
    version: str


class Heartbeats:
    """Reports to the switchboard, again and again. A report that fails is logged; the next one tells as much."""

    def __init__(
        self,
        switchboard: SwitchboardClient,
        connector: Connector,
        vitals: ConnectorHealth,
        clock: Callable[[], datetime],
    ) -> None:
        self._switchboard = switchboard
        self._connector = connector
        self._vitals = vitals
        self._clock = clock

    def report(self) -> dict[str, Any]:
        vitals, now = self._vitals, self._clock()
        vitals.changed.clear()
        status: dict[str, Any] = {
            "state": vitals.state,
            "uptime_s": max(0.0, (now - vitals.started_at).total_seconds()),
        }
        if vitals.error_message is not None:
            status["error_message"] = vitals.error_message
        checkpoint: dict[str, str] = {}
        if vitals.cursor is not None and vitals.cursor_at is not None:
            checkpoint = {"cursor": vitals.cursor, "updated_at": vitals.cursor_at.isoformat()}
        if (generated_at := vitals.contacts_generated_at()) is not None:
            checkpoint["contacts_generated_at"] = generated_at.isoformat()
        return {
            "schema_version": SCHEMA,
            "connector": self._connector._asdict(),
            "status": status,
            "counters": dict(vitals.counters),
            "checkpoint": checkpoint or None,
            "sent_at": now.isoformat(),
        }

    async def beat(self) -> None:
        await self._switchboard.heartbeat(self.report())

    async def run(self, every: timedelta = EVERY, shortest: timedelta = SHORTEST) -> None:
        """Beats for ever: after `every`, and when the state has changed. A report that fails changes nothing."""
        while True:
            await asyncio.sleep(min(shortest, every).total_seconds())
            await pause(self._vitals.changed, max(every - shortest, timedelta(0)))
            try:
                await self.beat()
            except Exception as error:
                log.warning("connector.heartbeat_failed", error=masked_urls(f"{type(error).__name__}: {error}"))

    async def introduce(self) -> None:
        """The first report. That the token is refused is raised: better seen at the start than in a log."""
        try:
            await self.beat()
        except Refused:
            raise
        except (PostroomError, OSError) as error:
            log.warning("connector.heartbeat_failed", error=masked_urls(f"{type(error).__name__}: {error}"))


@contextlib.asynccontextmanager
async def sending_heartbeats(
    heart: Heartbeats, every: timedelta = EVERY, shortest: timedelta = SHORTEST
) -> AsyncGenerator[None]:
    """The heartbeat, for as long as the block lasts; `introduce` makes the first one."""
    task = asyncio.create_task(heart.run(every, shortest), name="heartbeat")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


async def pause(stop: asyncio.Event, length: timedelta) -> None:
    """Waits so long, or until `stop`."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(length.total_seconds()):
            await stop.wait()
