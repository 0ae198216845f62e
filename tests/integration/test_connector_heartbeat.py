"""The heartbeat of a connector, to a real switchboard and to one that does not answer."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from redis.exceptions import RedisError

from postroom.core.errors import IntakeRefused, Refused, SwitchboardUnavailable
from postroom.sources.runtime import Connector, ConnectorHealth, Heartbeats, sending_heartbeats
from postroom.store.engine.database import Database
from postroom.store.intake.connectors import list_connectors
from postroom.system.wall_clock import wall_clock
from support.patience import PATIENCE_S
from support.redis_setup import IDENTITY, SOON, RedisSetup


async def test_the_heartbeat_tells_how_the_connector_is_doing(setup: RedisSetup, sqlite: Database):
    (entry_id,) = await setup.add(1)
    connector = await setup.start()
    await setup.switchboard.until(lambda: len(setup.switchboard.receipts) == 1)
    await connector.stop()
    connector.health.report_problem("degraded", RedisError("cannot reach redis://user:secret@host"))
    heart = Heartbeats(
        setup.switchboard, Connector("redis-stream", IDENTITY, "one", "1.0"), connector.health, clock=wall_clock
    )
    await heart.beat()
    (seen,) = await sqlite.run(list_connectors())
    assert (seen.connector_type, seen.endpoint_identity, seen.instance_id) == ("redis-stream", IDENTITY, "one")
    assert (seen.state, seen.counters["accepted"]) == ("degraded", 1)
    assert seen.checkpoint is not None
    assert seen.checkpoint["cursor"] == entry_id
    assert seen.error is not None
    assert "cannot reach" in seen.error
    assert "secret" not in seen.error


class Deaf:
    """A switchboard that takes no heartbeat."""

    def __init__(self, error: Exception, enough: int) -> None:
        self.error = error
        self.beats = 0
        self.enough = asyncio.Event()
        self._until = enough

    async def heartbeat(self, _report: Mapping[str, Any]) -> None:
        self.beats += 1
        if self.beats >= self._until:
            self.enough.set()
        raise self.error


@pytest.mark.parametrize("error", [SwitchboardUnavailable("gone"), OSError("gone"), IntakeRefused("full", SOON)])
async def test_a_heartbeat_that_fails_is_tried_again_at_the_next_beat(error: Exception):
    deaf = Deaf(error, enough=3)
    heart = Heartbeats(deaf, Connector("redis-stream", IDENTITY, "one", "1.0"), ConnectorHealth(wall_clock), wall_clock)  # type: ignore[arg-type]
    await heart.introduce()
    async with sending_heartbeats(heart, every=timedelta(milliseconds=1)), asyncio.timeout(PATIENCE_S):
        await deaf.enough.wait()


async def test_a_token_that_is_refused_is_reported_at_the_start():
    deaf = Deaf(Refused("revoked"), enough=1)
    heart = Heartbeats(deaf, Connector("redis-stream", IDENTITY, "one", "1.0"), ConnectorHealth(wall_clock), wall_clock)  # type: ignore[arg-type]
    with pytest.raises(Refused, match="revoked"):
        await heart.introduce()
