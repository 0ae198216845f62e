"""How often a connector reports and refreshes by default: as often as promised, and no more."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, cast

from postroom.core.errors import SwitchboardUnavailable
from postroom.core.heartbeat import liveness
from postroom.sources.refreshing import keep_fresh
from postroom.sources.runtime import Connector, ConnectorHealth, Heartbeats
from postroom.sources.switchboard_client import SwitchboardClient
from support.jumping_loop import now, run

NOON = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
HOUR_S = 3600
REPORTS_ON_THEIR_WAY = timedelta(seconds=5)


def wall_time() -> datetime:
    return NOON + timedelta(seconds=now())


class Heard:
    """The switchboard's ear."""

    def __init__(self) -> None:
        self.reports: list[datetime] = []

    async def heartbeat(self, report: Mapping[str, Any]) -> None:
        self.reports.append(datetime.fromisoformat(report["sent_at"]))


async def _an_hour_of(work: asyncio.Task[None]) -> None:
    await asyncio.sleep(HOUR_S)
    work.cancel()
    await asyncio.wait({work})


def test_a_connector_that_lives_is_online_all_the_time_and_reports_about_every_two_minutes() -> None:
    async def scenario() -> list[datetime]:
        heard = Heard()
        connector = Connector("webhook", "webhook:ci", "one", "1.0")
        heart = Heartbeats(cast(SwitchboardClient, heard), connector, ConnectorHealth(wall_time), wall_time)
        await heart.introduce()
        await _an_hour_of(asyncio.create_task(heart.run()))
        return heard.reports

    reports = run(scenario())
    for earlier, later in pairwise(reports):
        assert liveness(earlier, later + REPORTS_ON_THEIR_WAY) == "online"
        assert liveness(earlier, later + 3 * REPORTS_ON_THEIR_WAY) == "stale", "more often than is needed"


def test_contacts_are_fetched_every_fifteen_minutes_and_every_minute_while_that_fails() -> None:
    async def scenario(away: bool) -> list[float]:
        asked: list[float] = []

        async def refresh() -> None:
            asked.append(now() / 60)
            if away:
                raise SwitchboardUnavailable("away")

        await _an_hour_of(asyncio.create_task(keep_fresh("contacts", refresh, asyncio.Event())))
        return [round(each, 3) for each in asked]

    assert [each for each in run(scenario(away=False)) if each < 60] == [0, 15, 30, 45]
    assert [each for each in run(scenario(away=True)) if each < 60] == list(range(60))
