"""Rows that several writers change at once are locked in one order, whatever the plan is; on PostgreSQL alone."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from postroom.core.outbound.fair_nodes import InFlight
from postroom.core.outbound.lanes import Lane
from postroom.store.engine.database import Script, Transaction, transaction
from postroom.store.engine.ids import new_id
from postroom.store.engine.postgres import PostgresDatabase
from postroom.store.jobs import jobs
from postroom.store.jobs.job_marks import advance
from postroom.store.outbound import outbound, outbound_turns
from postroom.store.outbound.outbound import Capacity
from postroom.store.outbound.outbound_recipients import Attempt, Departure, RecipientChange, leave, record_outcomes
from postroom.store.outbound.outbound_turns import IN_ORDER, TurnPlace
from support.smtp_sending import new_mail, queue_mail
from support.store.fault_cases_delivery import ADA, LEASE
from support.store.job_setup import JobSetup
from support.store.running_worker import until

BY_ID = "enable_seqscan=off&enable_bitmapscan=off"
BY_PLACE = "enable_indexscan=off&enable_bitmapscan=off"
MAILS = 21


class Writers:
    """Two processes whose statements are planned differently.

    No one resolves a circle: it lasts until a statement times out, which is an error.
    """

    def __init__(self, url: str, other: asyncpg.Connection) -> None:
        self._url = url
        self.other = other

    @asynccontextmanager
    async def _database(self, plans: str) -> AsyncGenerator[PostgresDatabase]:
        opened = PostgresDatabase(f"{self._url}?deadlock_timeout=1h&{plans}", patience_s=1)
        try:
            yield opened
        finally:
            await opened.close()

    async def meet(self, locked: str, one: Transaction[Any], another: Transaction[Any]) -> list[Any]:
        """Run both, which wait for the row that is `locked`, and then go on."""
        async with self._database(BY_ID) as first, self._database(BY_PLACE) as second:
            async with self.other.transaction():
                await self.other.execute(f"{locked} FOR UPDATE")
                writing = [asyncio.create_task(first.run(one)), asyncio.create_task(second.run(another))]
                await until(self._both_wait)
            return await asyncio.gather(*writing)

    async def _both_wait(self) -> bool:
        return await self.other.fetchval("SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted") == 2


@pytest.fixture
async def writers(emptied_postgres_url: str) -> AsyncIterator[Writers]:
    other = await asyncpg.connect(emptied_postgres_url, server_settings={"search_path": "postroom"})
    yield Writers(emptied_postgres_url, other)
    await other.close()


@pytest.mark.parametrize("verb", ["leave", "record_outcomes"])
async def test_mails_are_locked_in_one_order(postgres_setup: JobSetup, writers: Writers, verb: str) -> None:
    setup, now = postgres_setup, postgres_setup.clock()
    news = sorted((new_mail(ADA) for _ in range(MAILS)), key=lambda new: new.id, reverse=True)
    await setup.database.run(queue_mail(news, now))
    holds = [
        each.hold
        for _ in range(MAILS)
        for each in await setup.database.run(outbound.lease_mail(new_id(), 1, now, now + LEASE, Capacity(InFlight(99))))
    ]
    assert len(holds) == MAILS
    await writers.other.execute("ANALYZE outbound_mail")
    places = [row[0] for row in await writers.other.fetch("SELECT id FROM outbound_mail")]
    assert places == sorted(places, reverse=True), "their places in the table are in another order than their ids"
    if verb == "leave":
        one = leave([Departure(hold, [(0, ADA)]) for hold in holds], now, now + LEASE)
    else:
        one = record_outcomes([Attempt(hold, [RecipientChange(0, ADA, "sent", "250 ok")]) for hold in holds], now)
    other = leave([Departure(hold, [(0, ADA)]) for hold in holds], now, now + LEASE)
    middle = f"SELECT 1 FROM outbound_mail WHERE id = '{places[MAILS // 2]}'"
    first, _ = await writers.meet(middle, one, other)
    assert first == ([None] * MAILS if verb == "leave" else ["sent"] * MAILS)


async def test_marks_are_locked_in_one_order(postgres_setup: JobSetup, writers: Writers) -> None:
    setup = postgres_setup
    for priority in (2, 1, 0):
        await setup.enqueue(priority=priority)
    places = [row[0] for row in await writers.other.fetch("SELECT priority FROM job_marks")]
    assert places == [2, 1, 0], "their places in the table are in another order than the priorities"
    claimed = await setup.claim()
    middle = "SELECT 1 FROM job_marks WHERE priority = 1"
    released = jobs.release([job.claim for job in claimed], setup.clock())
    assert (await writers.meet(middle, advance(0), released))[1] == 3


@transaction
def count_waiting(changes: Mapping[TurnPlace, int]) -> Script[None]:
    yield from outbound_turns._counting(changes)


def waiting_in(lane: Lane) -> TurnPlace:
    return TurnPlace(lane, (1, 1, 1))


async def test_turns_are_locked_in_one_order_whether_more_or_fewer_wait(
    postgres_setup: JobSetup, writers: Writers
) -> None:
    high, normal = waiting_in("high"), waiting_in("normal")
    await postgres_setup.database.run(count_waiting({IN_ORDER: 5, high: 5, normal: 5}))
    changes = count_waiting({IN_ORDER: -1, high: 1, normal: 1}), count_waiting({IN_ORDER: 1, high: -1, normal: 1})
    middle = "SELECT 1 FROM outbound_turns WHERE level = 'sender' AND lane = 'normal'"
    await writers.meet(middle, *changes)
    rows = await writers.other.fetch("SELECT lane, waiting, busy FROM outbound_turns WHERE level = 'sender' ORDER BY 1")
    assert [tuple(row) for row in rows] == [("fifo", 5, True), ("high", 5, True), ("normal", 7, True)]
